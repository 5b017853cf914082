"""From checkpoint files to filled parameters."""
