"""Fourier transforms: passes over lines of any length."""
