/**
 * Web servers for tests: answers from a script, in order, and remembers what was asked.
 *
 * A request that the script has no answer for is rejected, so that nothing is called unnoticed; one to an address that the egress policy refuses
 * is, as the real client does it.
 */
import type { HttpClient, HttpRequest, HttpResponse } from './fetch.js'
import { assertAllowed, PUBLIC_ONLY } from './egress-policy.js'

export class FakeHttpClient implements HttpClient {
  /** Requests in the order in which they came. */
  readonly requests: HttpRequest[] = []
  /** Called while a request is under way. */
  onRequest: () => unknown = () => undefined
  private readonly answers: (Partial<HttpResponse> | Error)[] = []

  /** The next request not yet answered for gets this: a response (200, empty, where it does not say), or a failure. */
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
