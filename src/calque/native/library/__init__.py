"""Operations with algorithms of their own: products, convolutions, sorts, transforms, linear
algebra."""
