"""What other programs read of a run: parts of JUnit and Markdown, GitHub's annotations, OpenMetrics."""
