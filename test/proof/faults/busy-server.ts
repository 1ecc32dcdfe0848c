/** A server on SQLite that mail is sent through by REST and SMTP all the while something is broken, and what has to hold afterwards. */
import type { Test } from 'tap'
import { MailFlow } from '../../support/program/mail-flow.js'
import {
  initialise,
  routeTo,
  type Initialised,
  type InstallOptions,
  type Serving,
} from '../../support/program/process.js'
import { openSink, type Sink } from '../../support/smtp/sink.js'
import { until } from '../../support/until.js'

export interface BusyServer {
  readonly sink: Sink
  readonly postroad: Initialised
  readonly server: Serving
  readonly flow: MailFlow
  /** Stops sending, and holds the server to its word: everything accepted arrives, and nothing comes twice unless `mayRepeat`. */
  readonly settle: (mayRepeat?: boolean) => Promise<void>
}

/** Mails that are accepted before anything is broken. */
const BEFORE = 60
const SETTLE_MS = 90_000

export async function openBusyServer(t: Test, options: InstallOptions = {}): Promise<BusyServer> {
  const sink = await openSink(t)
  const postroad = await initialise(t, { ...options, env: { ...routeTo(sink.port), ...options.env } })
  await postroad.json('workspace', 'set', postroad.workspaceId, 'hourly_limit=0', 'daily_limit=0')
  const server = await postroad.serve()
  const flow = new MailFlow(t, sink, postroad.key)
  flow.through(server)
  await flow.acceptedOnce(BEFORE)
  return {
    ...{ sink, postroad, server, flow },
    async settle(mayRepeat = false) {
      await flow.stop()
      await until(
        'all accepted mail to arrive',
        () => flow.missing.length === 0,
        SETTLE_MS,
        async () =>
          [
            `${flow.missing.length} of ${flow.accepted.size} are missing; ${Date.now()}`,
            ...postroad.sql('select * from queue limit 10').map(row => JSON.stringify(row)),
            ...server.log.slice(-20).map(line => JSON.stringify(line)),
          ].join('\n'),
      )
      const { accepted, repeated, refusals, unanswered } = flow
      t.comment([...new Set(refusals.map(({ by, answer }) => `${by}: ${answer}`))].join('; '))
      t.comment(
        `accepted ${accepted.size}, refused ${refusals.length}, without answer ${unanswered}, repeated ${repeated.length}`,
      )
      if (!mayRepeat) t.same(repeated, [], 'nothing arrived twice')
    },
  }
}

/** Codes of the reasons that `/health` gives. */
export async function healthReasons(server: Serving): Promise<string[]> {
  const { body } = await server.get('/health')
  return ((body?.data?.reasons ?? []) as { code: string }[]).map(({ code }) => code)
}
