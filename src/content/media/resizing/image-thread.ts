/**
 * Prepares uploaded images in a thread, one at a time, workspaces in turns; the event loop only sends and receives octets.
 *
 * The thread starts with the first image and ends when no image came for a while, which returns the memory of its decoders. An image that
 * takes too long ends the thread. Files of many pixels need about twenty octets a pixel while they are prepared.
 * Fails: AppError validation_error for a file that cannot be used; unavailable if the thread ends, or too many images wait.
 */
import { AppError } from '../../../core/errors.js'
import { FairGate } from '../../../core/fair-shares.js'
import { currentHolder } from '../../../core/holder.js'
import { formatDuration } from '../../../core/units.js'
import type { Services } from '../../../db/services.js'
import type { Thread } from '../../../world/threads.js'
import type { Timer } from '../../../world/time/clock.js'
import type { PreparedImage } from './prepare-image.js'

export interface ImageTask {
  readonly octets: Uint8Array
  readonly maxPixels: number
}

export type ImageAnswer =
  | { readonly image: PreparedImage }
  /** Of the file; completes "the file ...". */
  | { readonly fault: string }
  /** Of the program. */
  | { readonly error: string }

const PROGRAM = new URL('./image-main.js', import.meta.url)
/** Pixels are in buffers, which do not count. */
const HEAP_MEGABYTES = 128
const LIMIT_MS = 60_000
const IDLE_MS = 20_000
const MAX_WAITING = 64
const RETRY_AFTER_MS = 5_000

interface Running {
  resolve(image: PreparedImage): void
  reject(error: AppError): void
}

export type ImageThreadParts = Pick<Services, 'clock' | 'log' | 'spawn'>

export class ImageThread {
  private readonly parts: ImageThreadParts
  private readonly gate = new FairGate(1, MAX_WAITING, () =>
    unavailable('too many images are being uploaded; try again in a few seconds'),
  )
  private running: Running | undefined
  private thread: Thread | undefined
  /** Of the image that is prepared, or of idleness. */
  private timer: Timer | undefined
  private isStopped = false

  constructor(parts: ImageThreadParts) {
    this.parts = parts
  }

  /** @param octets are transferred to the thread, and empty afterwards */
  prepare(octets: Uint8Array, maxPixels: number): Promise<PreparedImage> {
    return this.gate.run(currentHolder(), async () => {
      if (this.isStopped) throw stopped()
      this.timer?.cancel()
      try {
        return await this.prepareNext({ octets, maxPixels })
      } finally {
        this.timer?.cancel()
        if (this.thread) this.timer = this.parts.clock.after(IDLE_MS, () => void this.end())
      }
    })
  }

  private prepareNext({ octets, maxPixels }: ImageTask): Promise<PreparedImage> {
    return new Promise((resolve, reject) => {
      this.running = { resolve, reject }
      this.timer = this.parts.clock.after(LIMIT_MS, () => this.giveUp())
      const task: ImageTask = { octets, maxPixels }
      this.runningThread().post(task, [octets.buffer as ArrayBuffer])
    })
  }

  async stop(): Promise<void> {
    this.isStopped = true
    this.settle(one => one.reject(stopped()))
    await this.end()
  }

  private runningThread(): Thread {
    if (this.thread) return this.thread
    const thread: Thread = this.parts.spawn(PROGRAM, {
      options: undefined,
      heapMegabytes: HEAP_MEGABYTES,
      isBackground: true,
      onMessage: message => {
        if (this.thread === thread) this.answered(message as ImageAnswer)
      },
      onEnd: ({ fault }) => {
        // One that was ended on purpose is no longer `this.thread`.
        if (this.thread !== thread) return
        this.thread = undefined
        this.failed(fault?.message ?? 'the thread ended')
      },
    })
    this.thread = thread
    return thread
  }

  private answered(answer: ImageAnswer): void {
    if ('error' in answer) {
      this.failed(answer.error)
      return
    }
    this.settle(one => {
      if ('image' in answer) one.resolve(answer.image)
      else one.reject(refusal(answer.fault))
    })
  }

  private failed(error: string): void {
    this.parts.log.error('image thread failed', { error })
    this.settle(one => one.reject(unavailable('the image could not be read; upload it again')))
  }

  private giveUp(): void {
    void this.end()
    this.settle(one => one.reject(refusal(`takes more than ${formatDuration(LIMIT_MS)} to decode`)))
  }

  private settle(how: (one: Running) => void): void {
    const { running } = this
    this.running = undefined
    if (running) how(running)
  }

  private async end(): Promise<void> {
    this.timer?.cancel()
    const { thread } = this
    this.thread = undefined
    await thread?.terminate()
  }
}

function refusal(fault: string): AppError {
  return new AppError('validation_error', `the file ${fault}`, { path: 'file' })
}

function stopped(): AppError {
  return unavailable('the server is stopping; upload the image again')
}

function unavailable(message: string): AppError {
  return new AppError('unavailable', message, { retryAfterMs: RETRY_AFTER_MS })
}
