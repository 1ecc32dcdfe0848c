/** Data that the pages of the API reference pass to their script. */
import type { Callable } from './code-samples.js'

/** The operations of a page. */
export interface PageCalls {
  /** Base URL, without trailing slash. */
  readonly base: string
  /** Environment variable in which samples expect the bearer token. */
  readonly token: string
  /** By operationId. */
  readonly operations: Readonly<Record<string, Callable>>
}

/** A search result: an operation, an event, a chapter, a guide or a part of one. */
export interface SearchEntry {
  readonly title: string
  /** E.g. `POST /contacts`. */
  readonly detail: string
  readonly url: string
  /** Further words. */
  readonly words: string
  readonly group: string
}
