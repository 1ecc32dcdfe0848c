/**
 * Parses and validates large JSON bodies in a thread (`large-body-main.ts`).
 *
 * The thread checks the body and divides it into pieces; this side builds the value from them and yields to the event loop in between,
 * because `JSON.parse` of short pieces takes a fraction of the time that receiving the value from a thread takes. The thread starts with
 * the first large body and handles one at a time; holders take turns.
 * Fails: AppError validation_error; unavailable if the thread ends, e.g. because it exceeds its heap.
 */
import type { TSchema } from 'typebox'
import { AppError, describeError, type ErrorCode } from '../../core/errors.js'
import { FairGate } from '../../core/fair-shares.js'
import type { Holder } from '../../core/holder.js'
import type { Log } from '../../world/log.js'
import { spawnThread, type SpawnThread, type Thread } from '../../world/threads.js'
import { nextTurn, type Clock } from '../../world/time/clock.js'
import { absentWhereNull } from '../absent-fields.js'
import { buildInSteps } from './json.js'
import type { JsonBounds, ScannedJson } from './json-scan.js'

export interface BodyBounds extends JsonBounds {
  /** After decompression. */
  readonly octets: number
}

export interface ReadBody {
  readonly value: unknown
  /** Digest of the value (`body-digest.ts`), if it was asked for. */
  readonly digest: string | undefined
}

/** How the body of a route is validated. */
export interface BodyRule {
  readonly bounds: BodyBounds
  readonly schema: TSchema
  validate(value: unknown): unknown
}

export interface LargeBodyTask {
  readonly id: number
  readonly octets: Uint8Array
  readonly bounds: JsonBounds
  /** JSON of the schema. */
  readonly schema: string
  readonly wantsDigest: boolean
}

export type LargeBodyResult = { readonly id: number } & (
  | { readonly octets: Uint8Array; readonly scanned: ScannedJson; readonly digest: string | undefined }
  | { readonly fault: { readonly code: ErrorCode; readonly message: string; readonly path?: string } }
)

const PROGRAM = new URL('./large-body-main.js', import.meta.url)
/** Two copies of the largest body as UTF-16. */
const HEAP_MEGABYTES = 1_024
/** Longest run of building before yielding to the event loop. */
const BUILD_MS = 4

type Waiting = (result: LargeBodyResult) => void

export class LargeBodies {
  private readonly clock: Clock
  private readonly log: Log
  private readonly spawn: SpawnThread
  private thread: Thread | undefined
  private readonly waiting = new Map<number, Waiting>()
  private readonly rules = new WeakMap<TSchema, { schema: string; convert: (value: unknown) => unknown }>()
  private lastId = 0
  // One at a time each, in fair turns. The memory budget limits how many wait.
  private readonly checks = new FairGate(1)
  private readonly builds = new FairGate(1)

  constructor(
    { clock, log }: { readonly clock: Clock; readonly log: Log },
    spawn: SpawnThread = spawnThread,
  ) {
    this.clock = clock
    this.log = log
    this.spawn = spawn
  }

  /** @param body is transferred to the thread, and empty afterwards @throws AppError validation_error, unavailable */
  async read(
    body: Buffer,
    { bounds, schema }: BodyRule,
    holder: Holder,
    wantsDigest: boolean,
  ): Promise<ReadBody> {
    const rule = this.ruleOf(schema)
    const result = await this.checks.run(holder, () =>
      this.check(body, { bounds, schema: rule.schema, wantsDigest }),
    )
    if ('fault' in result) {
      const { code, message, ...details } = result.fault
      throw new AppError(code, message, details)
    }
    const octets = Buffer.from(result.octets.buffer, result.octets.byteOffset, result.octets.byteLength)
    const value = await this.builds.run(holder, () => this.build(octets, result.scanned, rule.convert))
    return { value, digest: result.digest }
  }

  private ruleOf(schema: TSchema) {
    const known = this.rules.get(schema)
    if (known) return known
    const rule = { schema: JSON.stringify(schema), convert: absentWhereNull(schema) }
    this.rules.set(schema, rule)
    return rule
  }

  private check(body: Buffer, task: Omit<LargeBodyTask, 'id' | 'octets'>): Promise<LargeBodyResult> {
    const id = ++this.lastId
    return new Promise(resolve => {
      this.waiting.set(id, resolve)
      const octets = new Uint8Array(body.buffer, body.byteOffset, body.byteLength)
      this.runningThread().post({ id, octets, ...task } satisfies LargeBodyTask, [body.buffer as ArrayBuffer])
    })
  }

  private runningThread(): Thread {
    return (this.thread ??= this.spawn(PROGRAM, {
      options: undefined,
      heapMegabytes: HEAP_MEGABYTES,
      isBackground: true,
      onMessage: message => this.settle(message as LargeBodyResult),
      onEnd: ({ fault }) => {
        this.thread = undefined
        this.log.error('request body thread ended', { error: describeError(fault) })
        const message = 'the request body could not be read; send it again'
        for (const id of this.waiting.keys()) this.settle({ id, fault: { code: 'unavailable', message } })
      },
    }))
  }

  private settle(result: LargeBodyResult): void {
    const resolve = this.waiting.get(result.id)
    this.waiting.delete(result.id)
    resolve?.(result)
  }

  private async build(
    octets: Buffer,
    scanned: ScannedJson,
    convert: (value: unknown) => unknown,
  ): Promise<unknown> {
    const steps = buildInSteps(octets, scanned, convert)
    let startedAt = this.clock.monotonic()
    let step = steps.next()
    while (!step.done) {
      if (this.clock.monotonic() - startedAt >= BUILD_MS) {
        await nextTurn()
        startedAt = this.clock.monotonic()
      }
      step = steps.next()
    }
    return step.value
  }
}
