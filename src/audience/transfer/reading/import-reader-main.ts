/**
 * The program of the thread that reads an imported file.
 *
 * Started by `import-reader.ts`, never imported; each import has one of its own.
 */
import { ownThread, stepAside } from '../../../world/threads.js'
import { serveImportReader } from './serve-import-reader.js'

stepAside()
serveImportReader(ownThread())
