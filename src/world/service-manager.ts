/**
 * Reports the state of the process to systemd: starting, ready, alive, stopping (sd_notify(3)).
 *
 * Writes to the socket that `systemd/start-notified` connected and passed in `$SD_NOTIFY_FD`; without it does nothing. The watchdog is
 * fed by a timer, so a blocked event loop stops feeding it. Never throws; write errors are ignored.
 */
import { write } from 'node:fs'

export interface ServiceManager {
  /** Still starting, for at most another hour. @param status one line for `systemctl status` */
  starting(status: string): void
  /** @param status one line for `systemctl status` */
  ready(status: string): void
  stopping(): void
}

export interface ServiceManagerOptions {
  /** `$SD_NOTIFY_FD`. */
  readonly descriptor: string | undefined
  /** `$WATCHDOG_USEC`: microseconds without a notification after which systemd kills the process. */
  readonly watchdog: string | undefined
}

type Send = (descriptor: number, text: string) => void

// Each write is one datagram.
const sendTo: Send = (descriptor, text) => write(descriptor, text, () => undefined)

export function openServiceManager(
  { descriptor, watchdog }: ServiceManagerOptions,
  send: Send = sendTo,
): ServiceManager {
  const number = numberIn(descriptor)
  if (number === undefined)
    return { starting: () => undefined, ready: () => undefined, stopping: () => undefined }
  const notify = (text: string) => send(number, text)
  const timeoutMs = (numberIn(watchdog) ?? 0) / 1_000
  const statusLine = (status: string) => `STATUS=${status.replace(/[\r\n]/g, ' ')}`
  return {
    starting: status => notify(`${statusLine(status)}\nEXTEND_TIMEOUT_USEC=${HOUR_MICROSECONDS}`),
    ready(status) {
      notify(`READY=1\n${statusLine(status)}`)
      // sd_watchdog_enabled(3) recommends at most half the timeout. Continues during shutdown, when hanging is most likely.
      if (timeoutMs > 0) setInterval(() => notify('WATCHDOG=1'), Math.max(100, timeoutMs / 3)).unref()
    },
    stopping: () => notify('STOPPING=1'),
  }
}

/** Longer than any one statement of an upgrade, during which nothing can be sent. */
const HOUR_MICROSECONDS = 3_600_000_000

function numberIn(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined
}
