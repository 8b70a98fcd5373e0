"""Tests of whole models as layers."""
