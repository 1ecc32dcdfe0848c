/**
 * Entry point of an import's reader thread.
 *
 * Started by `import-reader.ts`, never imported; one thread per import.
 */
import { ownThread, stepAside } from '../../../world/threads.js'
import { serveImportReader } from './serve-import-reader.js'

stepAside()
serveImportReader(ownThread())
