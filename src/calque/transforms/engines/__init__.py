"""The engines of transformations: forward and transposed derivatives, batching, and the trees and
signatures of user functions."""
