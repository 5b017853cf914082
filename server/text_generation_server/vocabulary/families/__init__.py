"""What files of a vocabulary leave unsaid, by publisher."""
