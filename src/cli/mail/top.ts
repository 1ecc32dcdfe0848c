/**
 * `postroad top`: a live view of the queue and of all mail, refreshed every second until interrupted.
 *
 * A client of the live figures of the admin API. Never changes anything. Without a server it says so and shows what is in the database. If
 * the server stops or starts meanwhile, the view goes on with the new state.
 */
import type { Command } from 'commander'
import { describeError } from '../../core/errors.js'
import { visibleLine } from '../../core/names.js'
import type { LiveQueueView } from '../../metrics/live-queue.js'
import type { LiveView, MailBalanceView } from '../../metrics/live.js'
import { withApi, type Api } from '../api.js'
import { type CliContext, type CommonOptions, printResult, table } from '../context.js'
import { apiCommand } from '../options.js'

const REFRESH_MS = 1_000
/** Number of sites and destinations shown. */
const ROWS = 20

export function topCommand(program: Command, context: CliContext): void {
  apiCommand(program, 'top', 'live view of queue and rates; exit with Ctrl-C')
    .option('--once', 'print one frame and exit, as --json does')
    .action(async (options: CommonOptions & { once?: boolean }) => {
      if (!options.once && !options.json) return drawUntilClosed(context, options)
      const frame = await withApi(context, options, readFrame)
      printResult(context, options, frame, () => frameLines(frame).join('\n'))
    })
}

const HOME = '\x1b[H'
const TO_END_OF_LINE = '\x1b[K'
const TO_END_OF_SCREEN = '\x1b[J'
/** Size if standard output is not a terminal. */
const DEFAULT_SIZE = { rows: 50, columns: 200 }

/** Until Ctrl-C or until standard output is closed. Reconnects if the server stopped or started. */
async function drawUntilClosed(context: CliContext, options: CommonOptions): Promise<void> {
  const { world, isOutputClosed } = context
  const isOpen = () => isOutputClosed?.() !== true
  let last: Frame | undefined
  while (isOpen())
    try {
      await withApi(context, options, async api => {
        while (isOpen() && !api.hasServerStarted()) {
          last = await readFrame(api)
          draw(context, last)
          await world.clock.sleep(REFRESH_MS)
        }
      })
    } catch (error) {
      if (!last) throw error
      draw(context, { ...last, trouble: describeError(error) })
      await world.clock.sleep(REFRESH_MS)
    }
}

/** Overwrites the last frame and is cut to the terminal, since a scrolled line would leave the old frame behind. */
function draw({ printRaw }: CliContext, frame: Frame): void {
  const { rows, columns } = { ...DEFAULT_SIZE, ...terminalSize() }
  const shown = frameLines(frame)
    .slice(0, rows - 1)
    .map(line => `${visibleLine(line).slice(0, columns)}${TO_END_OF_LINE}`)
  printRaw(`${HOME}${shown.join('\n')}${TO_END_OF_SCREEN}`)
}

function terminalSize(): { rows: number; columns: number } | undefined {
  const { isTTY, rows, columns } = process.stdout
  return isTTY ? { rows, columns } : undefined
}

async function readFrame({ admin }: Api): Promise<Frame> {
  const [live, { active, sites, destinations }] = await Promise.all([
    admin.get<LiveView>('/live'),
    admin.get<LiveQueueView>('/live/queue'),
  ])
  const { messages, due, held } = live.queue
  const { accepted, delivered, deferred, bounced, failed } = live.last_minute
  return {
    time: live.time,
    serving: live.serving,
    trouble: live.serving ? null : 'the server is not running',
    database: live.database,
    balance: live.balance,
    active,
    total: { queued: messages, due, held, accepted, delivered, deferred, bounced: bounced + failed },
    sites: sites.slice(0, ROWS),
    destinations: destinations.slice(0, ROWS),
  }
}

/** Rates are those of the last minute. */
export interface Frame {
  /** ISO 8601. */
  readonly time: string
  /** Whether a server is running. */
  readonly serving: boolean
  /** Why the figures are incomplete or old; null if they are not. */
  readonly trouble: string | null
  /** Null if the database is not a local file. */
  readonly database: LiveView['database']
  readonly balance: MailBalanceView
  /** Deliveries in progress; null without a server. */
  readonly active: number | null
  readonly total: {
    readonly queued: number
    readonly due: number
    readonly held: number
    readonly accepted: number
    readonly delivered: number
    readonly deferred: number
    /** Rejected permanently, or impossible to send. */
    readonly bounced: number
  }
  /** Busy sites first. */
  readonly sites: LiveQueueView['sites']
  /** Most queued mail first. */
  readonly destinations: LiveQueueView['destinations']
}

type Rates = Pick<Frame['sites'][number], 'delivered' | 'deferred' | 'bounced'>

const MAX_NAME_LENGTH = 48
const RATE_HEADS = ['DELIVERED/MIN', 'DEFERRED/MIN', 'BOUNCED/MIN']

function frameLines({ time, trouble, database, balance, active, total, ...rows }: Frame): string[] {
  return [
    `postroad top  ${time}${trouble === null ? '' : `  ${trouble}`}`,
    `${total.queued} queued, ${total.due} due, ${total.held} held; ${active ?? '-'} active; last minute: ` +
      `${total.delivered} delivered, ${total.deferred} deferred, ${total.bounced} bounced`,
    balanceLine(balance),
    ...(database === null ? [] : [databaseLine(database)]),
    '',
    ...table(
      ['SITE', 'ACTIVE', 'WINDOW', 'BACKED OFF UNTIL', ...RATE_HEADS],
      rows.sites.map(row => [clip(row.site), row.active, row.window, row.backoff_until, ...rateCells(row)]),
    ).split('\n'),
    '',
    ...table(
      ['DESTINATION', 'QUEUED', 'DUE', 'HELD', ...RATE_HEADS, 'SITE'],
      rows.destinations.map(row => [
        clip(row.destination),
        row.has_more ? `${row.queued}+` : row.queued,
        row.due,
        row.held,
        ...rateCells(row),
        clip(row.site),
      ]),
    ).split('\n'),
  ]
}

/** All mail ever accepted; a sum that does not come out is said. */
function balanceLine(balance: MailBalanceView): string {
  const { accepted, delivered, bounced, failed, cancelled, suppressed, waiting, difference } = balance
  const parts = [
    `${delivered} delivered`,
    `${bounced} bounced`,
    `${failed} failed`,
    `${cancelled} cancelled`,
    `${suppressed} suppressed`,
    `${waiting} waiting`,
    ...(difference === 0 ? [] : [`${difference} UNACCOUNTED FOR`]),
  ]
  return `all mail: ${accepted} accepted = ${parts.join(' + ')}`
}

function databaseLine(now: NonNullable<Frame['database']>): string {
  return (
    `database: ${inUnits(now.octets)}, ${inUnits(now.free_octets)} of it unused; log ${inUnits(now.log_octets)}; ` +
    `${inUnits(now.disk_free_octets)} of disk free`
  )
}

function inUnits(octets: number): string {
  const [unit, size]: readonly [string, number] =
    octets >= 1e9 ? ['GB', 1e9] : octets >= 1e6 ? ['MB', 1e6] : ['KB', 1e3]
  return `${(octets / size).toFixed(1)} ${unit}`
}

function rateCells({ delivered, deferred, bounced }: Rates): number[] {
  return [delivered, deferred, bounced]
}

/** A site of many hosts is named after all of them, so long names are cut. */
function clip(name: string): string {
  return name.length <= MAX_NAME_LENGTH ? name : `${name.slice(0, MAX_NAME_LENGTH - 1)}…`
}
