/** Operators match on log events: each is documented, none is documented that nothing logs. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { LOG_EVENTS, logsMarkdown } from '../../src/world/log-events.js'

t.test('docs/logs.md is what the catalogue generates (node build/src/cli/write-generated.js)', async t => {
  t.equal(readFileSync('docs/logs.md', 'utf8'), logsMarkdown())
})

/** Events put together from a subject and what happened to it. */
const COMPOSED = /^(message|delivery outcome|webhook attempt) /

t.test('every documented event is logged somewhere', async t => {
  const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts') && !name.endsWith('log-events.ts'))
    .map(name => readFileSync(join('src', name), 'utf8'))
  for (const event of Object.values(LOG_EVENTS).flatMap(events => Object.keys(events))) {
    if (COMPOSED.test(event)) continue
    t.ok(
      sources.some(source => source.includes(`'${event}'`)),
      event,
    )
  }
})

t.test('an event is logged at one level', async t => {
  const events = Object.values(LOG_EVENTS).flatMap(byName => Object.keys(byName))
  t.equal(new Set(events).size, events.length)
})
