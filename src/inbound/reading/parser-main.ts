/**
 * The program of the thread that reads inbound mail.
 *
 * Started by `parser-thread.ts`, never imported. A mail that breaks it ends the thread; the server starts another and
 * finds out which mail it was.
 */
import { readReturnedMail } from '../../mail/returned/read-returned-mail.js'
import { ownThread, stepAside } from '../../world/threads.js'
import { serveParser } from './read-inbound-mail.js'

stepAside()
serveParser(ownThread(), readReturnedMail)
