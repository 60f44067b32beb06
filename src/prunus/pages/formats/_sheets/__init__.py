"""What readers of workbooks share: cells, numbers, regions."""
