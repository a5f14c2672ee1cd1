"""A healthy Keras run with the interactive bar."""
import numpy as np
import keras

keras.utils.set_random_seed(7)
x = np.random.rand(256, 12).astype("float32")
y = np.random.rand(256, 1).astype("float32")
model = keras.Sequential([keras.Input((12,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse", metrics=["mae"])
model.fit(x, y, epochs=4, batch_size=32, validation_split=0.2)
model.save("model.keras")
print("saved model.keras")
