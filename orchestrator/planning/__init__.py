"""From matrix.yaml and kernel folders to what runs where: expand, select, prune, render."""
