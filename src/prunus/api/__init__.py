"""What ``import prunus`` gives."""
