/**
 * An HTTP client for tests: answers from a script, in order, and records requests.
 *
 * Rejects requests the script has no answer for, and requests the egress policy refuses.
 */
import type { HttpClient, HttpRequest, HttpResponse } from './fetch.js'
import { assertAllowed, PUBLIC_ONLY } from './egress-policy.js'

export class FakeHttpClient implements HttpClient {
  readonly requests: HttpRequest[] = []
  onRequest: () => unknown = () => undefined
  private readonly answers: (Partial<HttpResponse> | Error)[] = []

  /** Adds an answer: a response (default 200, empty body) or an error. */
  answer(answer: Partial<HttpResponse> | Error): this {
    this.answers.push(answer)
    return this
  }

  async request(request: HttpRequest): Promise<HttpResponse> {
    if (request.address !== undefined) assertAllowed(PUBLIC_ONLY, request, request.address)
    this.requests.push(request)
    await this.onRequest()
    const answer = this.answers.shift()
    if (answer === undefined) throw new Error(`no answer scripted for ${request.method} ${request.url}`)
    if (answer instanceof Error) throw answer
    return { status: 200, headers: {}, body: Buffer.alloc(0), isTruncated: false, ...answer }
  }
}
