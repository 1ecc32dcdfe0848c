/**
 * Uploads a file from disk to one of the APIs without reading it into memory, and tells how far it is.
 *
 * `fetch` knows no progress of uploads, and a request that may be sent again would be held in memory; so this uses XMLHttpRequest.
 */
import { keepCall } from './calls.svelte'
import { askToSignIn } from './sign-in.svelte'
import { currentScope } from './client'
import { ApiFault, faultOf } from './fault'

/** @param path below `/api`, e.g. `/v1/contacts/import?…` @param onProgress 0 to 1 @param mediaType of a file for the API @returns `data` of the answer @throws ApiFault */
export async function upload<T>(
  path: string,
  file: File,
  onProgress: (share: number) => void = () => {},
  mediaType = 'text/csv',
): Promise<T> {
  for (;;) {
    const response = await sendFile(path, file, onProgress, mediaType)
    const body: unknown = await response.json().catch(() => undefined)
    if (response.status === 401) await askToSignIn()
    else if (response.ok) return (body as { data: T }).data
    else throw faultOf(response, body)
  }
}

/** Requests of the admin API name their workspace themselves. */
const NO_SCOPE = { workspaceId: undefined, isSandbox: false }

function sendFile(
  path: string,
  file: File,
  onProgress: (share: number) => void,
  mediaType: string,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    const url = `${location.origin}/api${path}`
    request.open('POST', url)
    const { workspaceId, isSandbox } = path.startsWith('/v1/') ? currentScope() : NO_SCOPE
    const headers: [string, string][] = [['content-type', mediaType]]
    if (workspaceId !== undefined) headers.push(['x-workspace', workspaceId])
    if (isSandbox) headers.push(['x-sandbox', 'true'])
    for (const [name, value] of headers) request.setRequestHeader(name, value)
    const { pathname, search } = new URL(url)
    keepCall({ method: 'POST', url: pathname + search, headers, body: undefined, file: file.name })
    request.upload.onprogress = ({ loaded, total }) => onProgress(total === 0 ? 0 : loaded / total)
    request.onerror = () => reject(new ApiFault('network', 'no answer from the server'))
    request.onload = () => resolve(new Response(request.responseText, { status: request.status }))
    request.send(file)
  })
}
