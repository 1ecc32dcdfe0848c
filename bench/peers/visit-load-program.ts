/**
 * A program of its own: readers of mail who follow links and load pixels, so many a second, on connections that stay open.
 *
 * Started by `scenarios/tracking/clicks.ts`, which tells it over IPC what to ask (`VisitLoad`) and is told what came of it (`VisitReport`). A
 * visit is begun when its time has come, and what it waits for a free connection counts. Plain sockets, since a client that costs as much
 * as the server measures itself. A connection that breaks ends with its visit, which is then not answered.
 */
import { connect, type Socket } from 'node:net'

export interface VisitLoad {
  readonly port: number
  /** Asked in this order, over and over. */
  readonly paths: readonly string[]
  readonly perSecond: number
  readonly seconds: number
  readonly connections: number
}

export interface VisitReport {
  /** Visits that have got their redirect or picture. */
  readonly answered: number
  /** Of them, those whose answer was no redirect and no picture. */
  readonly refused: number
  /** Begun and not answered. */
  readonly unanswered: number
  /** Ms from when each was due. */
  readonly latencies: readonly number[]
  readonly seconds: number
  /** Of this program. */
  readonly cpuSeconds: number
}

const TICK_MS = 2
/** For what is left when no more is begun. */
const SETTLE_MS = 5_000
const AGENT = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

process.on('message', (load: VisitLoad) => {
  visit(load, report => process.send?.(report))
})

function visit(load: VisitLoad, done: (report: VisitReport) => void): void {
  const latencies: number[] = []
  let [begun, answered, refused, broken, asked] = [0, 0, 0, 0, 0]
  const waiting: number[] = []
  const idle: Reader[] = []
  const startedAt = performance.now()
  const cpuBefore = process.cpuUsage()
  let isOver = false
  const next = (reader: Reader) => {
    const dueAt = waiting.shift()
    if (dueAt === undefined) idle.push(reader)
    else reader.ask(load.paths[asked++ % load.paths.length] ?? '', dueAt)
  }
  const readers = Array.from(
    { length: load.connections },
    () =>
      new Reader(load.port, {
        ready: next,
        answered(reader, dueAt, status) {
          answered += 1
          if (status !== '302' && status !== '200') refused += 1
          latencies.push(performance.now() - dueAt)
          next(reader)
        },
        broken: wasAsked => {
          if (wasAsked) broken += 1
        },
      }),
  )
  const timer = setInterval(() => {
    const now = performance.now()
    const due = Math.min(
      load.perSecond * load.seconds,
      Math.floor(((now - startedAt) * load.perSecond) / 1_000),
    )
    for (; begun < due; begun += 1) {
      const dueAt = startedAt + (begun * 1_000) / load.perSecond
      const reader = idle.pop()
      if (reader) reader.ask(load.paths[asked++ % load.paths.length] ?? '', dueAt)
      else waiting.push(dueAt)
    }
    const isDone = begun >= load.perSecond * load.seconds && answered + broken >= begun
    const isLate = now - startedAt > load.seconds * 1_000 + SETTLE_MS
    const isAlone = readers.every(reader => reader.isBroken)
    if (isOver || !(isDone || isLate || isAlone)) return
    isOver = true
    clearInterval(timer)
    for (const reader of readers) reader.end()
    const seconds = (now - startedAt) / 1_000
    const { user, system } = process.cpuUsage(cpuBefore)
    const cpuSeconds = (user + system) / 1_000_000
    done({
      answered,
      refused,
      unanswered: begun - answered - waiting.length,
      latencies,
      seconds,
      cpuSeconds,
    })
  }, TICK_MS)
}

interface ReaderEvents {
  ready(reader: Reader): void
  answered(reader: Reader, dueAt: number, status: string): void
  /** @param wasAsked a visit was under way */
  broken(wasAsked: boolean): void
}

/** One connection, one visit at a time. */
class Reader {
  isBroken = false
  private readonly socket: Socket
  private dueAt: number | undefined
  private answer = ''

  constructor(port: number, events: ReaderEvents) {
    this.socket = connect(port, '127.0.0.1', () => events.ready(this)).setNoDelay(true)
    this.socket.setEncoding('latin1').on('data', (text: string) => {
      this.answer += text
      const head = this.answer.indexOf('\r\n\r\n')
      if (head < 0 || this.dueAt === undefined) return
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(this.answer)?.[1] ?? 0)
      if (this.answer.length < head + 4 + length) return
      const status = this.answer.slice(9, 12)
      const { dueAt } = this
      this.answer = ''
      this.dueAt = undefined
      events.answered(this, dueAt, status)
    })
    this.socket.on('error', () => {})
    this.socket.on('close', () => {
      if (this.isBroken) return
      this.isBroken = true
      events.broken(this.dueAt !== undefined)
    })
  }

  ask(path: string, dueAt: number): void {
    this.dueAt = dueAt
    this.socket.write(`GET ${path} HTTP/1.1\r\nHost: mail.bench.example\r\nUser-Agent: ${AGENT}\r\n\r\n`)
  }

  end(): void {
    this.isBroken = true
    this.socket.destroy()
  }
}
