"""What people decided about findings: files in a folder that git keeps, read, checked and written."""
