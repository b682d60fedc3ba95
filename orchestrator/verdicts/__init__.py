"""From the history of a suite to what changed tonight: findings for people, CI and triage."""
