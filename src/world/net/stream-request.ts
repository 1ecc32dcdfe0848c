/**
 * One HTTP request whose body and answer may be streams, for commands that talk to an appliance by URL or Unix socket.
 *
 * Follows no redirects. Rejects with the socket or TLS error.
 */
import { request as requestPlain, type ClientRequest, type IncomingMessage } from 'node:http'
import { request as requestSecure } from 'node:https'
import { pipeline } from 'node:stream/promises'

export interface StreamRequest {
  readonly method: string
  /** Absolute http or https URL. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | AsyncIterable<Buffer>
  /** Unix socket to connect to instead of the URL's host. */
  readonly socketPath?: string
  /** Longest silence of the server, ms; 0 = unlimited. */
  readonly silenceMs: number
}

export interface StreamResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Must be read to its end or destroyed. */
  readonly body: AsyncIterable<Buffer>
}

export async function streamRequest(wanted: StreamRequest): Promise<StreamResponse> {
  const { method, url, headers, body, socketPath, silenceMs } = wanted
  const open = url.startsWith('https:') ? requestSecure : requestPlain
  const request: ClientRequest = open(url, {
    method,
    agent: false,
    headers:
      typeof body === 'string' ? { ...headers, 'Content-Length': Buffer.byteLength(body) } : { ...headers },
    ...(socketPath === undefined ? {} : { socketPath }),
  })
  if (silenceMs > 0)
    request.setTimeout(silenceMs, () => {
      request.destroy(new Error(`the server did not answer within ${silenceMs / 1_000} s`))
    })
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve)
    request.once('error', reject)
  })
  if (typeof body === 'object') {
    // A server may answer, with a refusal, before it has read the whole body.
    const sent = pipeline(body, request).catch(() => {})
    const answer = await answered
    void sent
    return toResponse(answer)
  }
  request.end(body)
  return toResponse(await answered)
}

function toResponse(answer: IncomingMessage): StreamResponse {
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: answer }
}
