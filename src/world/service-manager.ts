/**
 * What systemd is told of this process: ready, alive, stopping (sd_notify(3)).
 *
 * Used by `serve`. Writes to the socket that `systemd/start-notified` has connected and names by `$SD_NOTIFY_FD`; without one it
 * does nothing, as on a terminal or in a container. The watchdog is fed by a timer of the event loop, so that a process whose loop
 * stands still is not fed. Fails: never; systemd that does not listen any more is its own affair.
 */
import { write } from 'node:fs'

export interface ServiceManager {
  /** @param status one line for `systemctl status` */
  ready(status: string): void
  stopping(): void
}

export interface ServiceManagerOptions {
  /** `$SD_NOTIFY_FD`. */
  readonly descriptor: string | undefined
  /** `$WATCHDOG_USEC`: after so long without a word the process is killed; microseconds. */
  readonly watchdog: string | undefined
}

type Send = (descriptor: number, text: string) => void

// Each write is a datagram, and never waits in the event loop.
const sendTo: Send = (descriptor, text) => write(descriptor, text, () => undefined)

export function openServiceManager(
  { descriptor, watchdog }: ServiceManagerOptions,
  send: Send = sendTo,
): ServiceManager {
  const number = numberIn(descriptor)
  if (number === undefined) return { ready: () => undefined, stopping: () => undefined }
  const say = (text: string) => send(number, text)
  const patienceMs = (numberIn(watchdog) ?? 0) / 1_000
  return {
    ready(status) {
      say(`READY=1\nSTATUS=${status.replace(/[\r\n]/g, ' ')}`)
      // sd_watchdog_enabled(3): half of the time, at least.
      // It goes on while the appliance drains: that is when a process most easily hangs.
      if (patienceMs > 0) setInterval(() => say('WATCHDOG=1'), Math.max(100, patienceMs / 3)).unref()
    },
    stopping: () => say('STOPPING=1'),
  }
}

function numberIn(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined
}
