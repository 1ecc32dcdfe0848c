/** The program of a reading thread that never comes to read. */
throw new Error('something is missing')
