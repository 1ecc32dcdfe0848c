/**
 * A client that has a file of contacts imported and looks on until the last row is done.
 *
 * Called by `audience.ts`, runs in this process. The rows are made before anything is measured; looking on is one request each 100 ms.
 * Fails: rejects where the file is refused, or the import does not come to its end.
 */
import { setTimeout as sleep } from 'node:timers/promises'

const LOOK_EVERY_MS = 100

export interface ImportTarget {
  readonly port: number
  readonly key: string
}

/** As the API shows it. */
interface Shown {
  readonly status: string
  readonly rows: number
  readonly created: number
  readonly updated: number
  readonly unchanged: number
  readonly rejected: number
  readonly started_at: string
  readonly completed_at: string
}

export interface ImportResult extends Shown {
  /** From the request to the answer that the file is stored. */
  readonly uploadMs: number
  /** From the first row to the last. */
  readonly workMs: number
}

/** @param query what else is asked of it, as `tags=a` */
export async function importFile(
  { port, key }: ImportTarget,
  file: Buffer,
  query: string,
): Promise<ImportResult> {
  const base = `http://127.0.0.1:${port}/api/v1/contacts`
  const headers = { authorization: `Bearer ${key}` }
  const ask = async (
    path: string,
    init: Omit<RequestInit, 'headers'> & { readonly headers?: Readonly<Record<string, string>> } = {},
  ): Promise<unknown> => {
    const response = await fetch(base + path, { ...init, headers: { ...headers, ...init.headers } })
    const text = await response.text()
    if (!response.ok) throw new Error(`the API answered ${response.status}: ${text}`)
    return (JSON.parse(text) as { data: unknown }).data
  }
  const sentAt = performance.now()
  const { import_id: id } = (await ask(`/import?${query}`, {
    method: 'POST',
    headers: { 'content-type': 'text/csv' },
    body: file,
  })) as { import_id: string }
  const uploadMs = performance.now() - sentAt
  for (;;) {
    await sleep(LOOK_EVERY_MS)
    const shown = (await ask(`/imports/${id}`)) as Shown
    if (shown.status === 'queued' || shown.status === 'processing') continue
    if (shown.status !== 'completed') throw new Error(`the import is ${shown.status}`)
    return { ...shown, uploadMs, workMs: Date.parse(shown.completed_at) - Date.parse(shown.started_at) }
  }
}
