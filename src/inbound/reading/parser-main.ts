/**
 * Entry point of the parser thread.
 *
 * Started by `parser-thread.ts`, never imported. A mail that breaks the parser ends the thread; the server starts
 * another and knows which mail it was.
 */
import { readReturnedMail } from '../../mail/returned/read-returned-mail.js'
import { ownThread, stepAside } from '../../world/threads.js'
import { serveParser } from './read-inbound-mail.js'

stepAside()
serveParser(ownThread(), readReturnedMail)
