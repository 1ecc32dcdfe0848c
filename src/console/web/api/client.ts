/**
 * Clients of the REST API and the admin API, typed by their OpenAPI documents.
 *
 * A request whose session has ended, or that needs a recent sign-in, waits until the operator has signed in and is then sent again; so
 * no form loses what was typed. POST requests carry an Idempotency-Key: one that is sent again does nothing twice.
 */
import createClient from 'openapi-fetch'
import { untrack } from 'svelte'
import type { paths as AdminPaths } from '#api/admin'
import type { paths as RestPaths } from '#api/rest'
import { recordCall } from './calls.svelte'
import { noteReachable } from './network.svelte'
import { askToConfirm, askToSignIn } from './sign-in.svelte'
import { ApiFault, faultOf } from './fault'

/** Reads that are refused for their rate wait this long at most before they are sent again. */
const MAX_WAIT_SECONDS = 10

export const rest = createClient<RestPaths>({ baseUrl: `${location.origin}/api/v1`, fetch: send })
export const admin = createClient<AdminPaths>({ baseUrl: `${location.origin}/api/admin/v1`, fetch: send })

interface Scope {
  readonly workspaceId: string | undefined
  readonly isSandbox: boolean
}

let scope = (): Scope => ({ workspaceId: undefined, isSandbox: false })

/** Sets the workspace and sandbox of REST API requests when they are sent. */
export function useScope(current: () => Scope): void {
  scope = current
}

/** The same, for requests that are not sent by these clients. */
export function currentScope(): Scope {
  return untrack(scope)
}

/** Idempotency keys of requests without an answer, by URL and body: the server may have done what they ask, so a repeat has the same key. */
const unanswered = new Map<string, string>()

/** An effect that asks depends on nothing that is read here. */
function send(request: Request): Promise<Response> {
  return untrack(() => sendUntilAnswered(request))
}

async function sendUntilAnswered(request: Request): Promise<Response> {
  const isRest = new URL(request.url).pathname.startsWith('/api/v1/')
  const { workspaceId, isSandbox } = currentScope()
  // A screen about a record of another workspace names that one itself.
  const isNamed = request.headers.has('X-Workspace')
  if (isRest && !isNamed && workspaceId !== undefined) request.headers.set('X-Workspace', workspaceId)
  if (isRest && !isNamed && isSandbox) request.headers.set('X-Sandbox', 'true')
  const isKeyed = isRest && request.method === 'POST' && !request.headers.has('Idempotency-Key')
  const same = isKeyed ? `${request.url} ${await request.clone().text()}` : ''
  const key = unanswered.get(same) ?? crypto.randomUUID()
  if (isKeyed) request.headers.set('Idempotency-Key', key)
  void recordCall(request.clone())
  for (;;) {
    if (isKeyed) unanswered.set(same, key)
    const response = await sendOnce(request.clone())
    unanswered.delete(same)
    if (response.status === 401 && !isSignIn(request)) await askToSignIn()
    else if (response.status === 403 && (await isRefusedAs(response, 'sign_in_required')))
      await askToConfirm()
    else if (response.status === 429 && request.method === 'GET' && waitOf(response) <= MAX_WAIT_SECONDS)
      await new Promise(resolve => setTimeout(resolve, waitOf(response) * 1_000))
    else return response
  }
}

async function sendOnce(request: Request): Promise<Response> {
  try {
    const response = await fetch(request)
    noteReachable(true)
    return response
  } catch (error) {
    if (request.signal.aborted) throw error
    noteReachable(false)
    throw new ApiFault('network', 'no answer from the server')
  }
}

/** The steps of signing in answer 401 themselves, and so does the look for a session at the start. */
function isSignIn({ url, method }: Request): boolean {
  const { pathname } = new URL(url)
  return pathname.includes('/session') || (pathname.endsWith('/me') && method === 'GET')
}

async function isRefusedAs(response: Response, code: string): Promise<boolean> {
  const body = (await response
    .clone()
    .json()
    .catch(() => ({}))) as { error?: { code?: string } }
  return body.error?.code === code
}

function waitOf(response: Response): number {
  return Number(response.headers.get('Retry-After') ?? 1)
}

/** The answer with its entity tag, to be sent back with a change. @throws ApiFault */
export async function answerTagged<T>(
  request: Promise<{ data?: T; error?: unknown; response: Response }>,
): Promise<{ readonly body: T; readonly etag: string }> {
  const { response } = await request
  const body = await answer(request)
  // A proxy that compresses answers makes their tags weak, which the API does not accept back.
  return { body, etag: (response.headers.get('ETag') ?? '*').replace(/^W\//, '') }
}

/** Header of a change: refused if the record has another tag by then. @param etag `*`: whatever it is by then */
export function ifMatch(etag: string): { 'If-Match': string } {
  return { 'If-Match': etag }
}

/** The answer to a request of either client. @throws ApiFault */
export async function answer<T>(
  request: Promise<{ data?: T; error?: unknown; response: Response }>,
): Promise<T> {
  const { data, error, response } = await request
  if (!response.ok || data === undefined) throw faultOf(response, error)
  return data
}
