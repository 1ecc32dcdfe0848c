/** Saves what a request answers as a file: links cannot carry the headers that name the workspace. */
import { answer } from '../api/client'

/** @param request made with `parseAs: 'blob'` @throws ApiFault */
export async function saveFile(
  request: Promise<{ data?: Blob; error?: unknown; response: Response }>,
  name: string,
): Promise<void> {
  const url = URL.createObjectURL(await answer(request))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  // The browser has the content once the click was handled.
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
