/** The table event -> operations -> test is complete, and its tests exist and ask for the event. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { Compile } from 'typebox/compile'
import { describedEvents, bodySchema } from '../../src/webhooks/events/event-schemas.js'
import { WEBHOOK_EVENT_NAMES } from '../../src/webhooks/events/webhook-event.js'
import { findTestFile } from '../contract/test-titles.js'
import { EVENT_TABLE } from './event-table.js'

t.test('each of the 21 events has a row with its causes and a test that asks for it', async t => {
  t.equal(WEBHOOK_EVENT_NAMES.length, 21)
  t.same(EVENT_TABLE.map(({ event }) => event).sort(), [...WEBHOOK_EVENT_NAMES].sort())
  for (const { event, causedBy, test } of EVENT_TABLE) {
    const [file, title] = test
    t.ok(causedBy.length > 0, event)
    t.ok(findTestFile(file)?.titles.has(title), `${file} has "${title}"`)
    t.ok(readFileSync(`test/${file}.test.ts`, 'utf8').includes(`'${event}'`), `${file} asks for ${event}`)
  }
})

t.test('each event is described with an example that passes its own schema', async t => {
  const described = describedEvents()
  t.same(Object.keys(described).sort(), [...WEBHOOK_EVENT_NAMES].sort())
  for (const event of WEBHOOK_EVENT_NAMES)
    t.ok(Compile(bodySchema(event)).Check(described[event]!.example), event)
})
