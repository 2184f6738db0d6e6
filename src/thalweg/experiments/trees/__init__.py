"""What the experiments about dissemination trees share (COSMOS, seed 000, 4.4)."""
