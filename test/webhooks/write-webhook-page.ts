/** Writes the events of `docs/webhooks.md` anew. Run from the project's folder: `node build/test/webhooks/write-webhook-page.js`. */
import { readFileSync, writeFileSync } from 'node:fs'
import { PAGE, withEvents } from './webhook-page.js'

writeFileSync(PAGE, withEvents(readFileSync(PAGE, 'utf8')))
