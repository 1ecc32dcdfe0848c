/** The table event -> operations is complete, and a test over HTTP asks for each event. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { Compile } from 'typebox/compile'
import { describedEvents, bodySchema } from '../../src/webhooks/events/event-schemas.js'
import { WEBHOOK_EVENT_NAMES } from '../../src/webhooks/events/webhook-event.js'
import { readClaims } from '../contract/read-claims.js'
import { EVENT_TABLE } from './event-table.js'

const SERVED = 'test/webhooks/events-served.test.ts'

t.test('each of the 22 events has a row with its causes and a test that asks for it', async t => {
  t.equal(WEBHOOK_EVENT_NAMES.length, 22)
  t.same(EVENT_TABLE.map(({ event }) => event).sort(), [...WEBHOOK_EVENT_NAMES].sort())
  const text = readFileSync(SERVED, 'utf8')
  const proved = new Set(readClaims(SERVED, text).claims.map(({ name }) => name))
  for (const { event, causedBy } of EVENT_TABLE) {
    t.ok(causedBy.length > 0, event)
    t.ok(proved.has(`Events > ${event}`) || proved.has(`Postroad > event ${event}`), `a test proves ${event}`)
    t.ok(text.includes(`'${event}'`), `${SERVED} asks for ${event}`)
  }
})

t.test('each event is described with an example that passes its own schema', async t => {
  const described = describedEvents()
  t.same(Object.keys(described).sort(), [...WEBHOOK_EVENT_NAMES].sort())
  for (const event of WEBHOOK_EVENT_NAMES)
    t.ok(Compile(bodySchema(event)).Check(described[event]!.example), event)
})
