"""A Keras model under TerminateOnNaN with a learning rate far too high."""
import numpy as np
import keras

keras.utils.set_random_seed(7)
x = np.random.rand(512, 12).astype("float32") * 50
y = np.random.rand(512, 1).astype("float32")
model = keras.Sequential([keras.Input((12,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
model.compile(optimizer=keras.optimizers.SGD(0.05), loss="mse")
model.fit(x, y, epochs=5, batch_size=16, verbose=2, callbacks=[keras.callbacks.TerminateOnNaN()])
