/** Files made here or answered by the API, kept by the browser. */

export function downloadText(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }))
  downloadUrl(url, name)
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

export function downloadUrl(url: string, name = ''): void {
  const anchor = document.createElement('a')
  anchor.href = url
  anchor.download = name
  anchor.click()
}
