/**
 * Parses and renders texts in a render thread that are too long for the main thread.
 *
 * They are parsed nowhere else: while all threads are busy, the main thread must not be as well.
 * Fails: AppError unavailable if the threads are busy.
 */
import { given } from '../../core/given.js'
import type { MergeText } from '../merge/merge-text.js'
import { renderKey, type RenderQueue } from './render-queue.js'
import type { MergeData } from './merging.js'
import type { ParseRequest, RenderResult } from './render-request.js'

/** UTF-16 units of texts and data that are parsed and rendered on the main thread, which takes a few milliseconds at most. */
export const INLINE_UNITS = 16_384

export interface RenderThreads {
  /** Absent in commands, which do everything themselves. */
  readonly renderQueue?: RenderQueue | undefined
  readonly workspaceId: string
}

export type Refused = Extract<RenderResult, { kind: 'refused' }>

/** @param data also renders the texts with it @returns the first fault */
export async function parseInThread(
  { renderQueue, workspaceId }: RenderThreads & { readonly renderQueue: RenderQueue },
  texts: readonly MergeText[],
  data?: MergeData,
): Promise<Refused | undefined> {
  const sources = texts.map(({ source, place }) => ({ source, place }))
  const request: ParseRequest = { kind: 'parse', sources, ...given({ data }) }
  const key = renderKey('source', request)
  const result = await renderQueue.render({ key, workspaceId, load: () => Promise.resolve(request) })
  const refused = result.kind === 'refused' ? result : undefined
  for (const text of texts)
    if (text.place === refused?.place) break
    else if (!refused || refused.place !== undefined) text.markValid()
  return refused
}

/** Whether a text is parsed in a thread. */
export function isLong({ source, hasTags }: MergeText): boolean {
  return source.length > INLINE_UNITS && hasTags
}
