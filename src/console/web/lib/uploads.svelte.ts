/** Images being uploaded, one after the other: the server prepares one at a time. */
import { upload } from '../api/upload'
import { ApiFault } from '../api/fault'
import { tr } from '../i18n/i18n'
import { asFault } from '../state/loaded.svelte'
import { IMAGE_TYPES, type MediaImage } from './media'

export interface Upload {
  readonly id: number
  readonly name: string
  /** 0 to 1. */
  readonly share: number
  readonly fault: ApiFault | undefined
}

interface Waiting {
  readonly id: number
  readonly file: File
}

export class Uploads {
  items = $state.raw<readonly Upload[]>([])
  private readonly waiting: Waiting[] = []
  private readonly done: (image: MediaImage) => void
  private isRunning = false
  private lastId = 0

  /** @param done called with each image that is in the library now */
  constructor(done: (image: MediaImage) => void) {
    this.done = done
  }

  add(files: Iterable<File>): void {
    for (const file of files) {
      const id = ++this.lastId
      const isImage = (IMAGE_TYPES as readonly string[]).includes(file.type)
      const fault = isImage ? undefined : new ApiFault('validation_error', tr().media.fileType)
      this.items = [...this.items, { id, name: file.name, share: 0, fault }]
      if (isImage) this.waiting.push({ id, file })
    }
    void this.run()
  }

  dismiss(id: number): void {
    this.items = this.items.filter(item => item.id !== id)
  }

  private async run(): Promise<void> {
    if (this.isRunning) return
    this.isRunning = true
    for (let next = this.waiting.shift(); next; next = this.waiting.shift()) await this.send(next)
    this.isRunning = false
  }

  private async send({ id, file }: Waiting): Promise<void> {
    const path = `/v1/media?file_name=${encodeURIComponent(file.name.slice(-200))}`
    try {
      const image = await upload<MediaImage>(path, file, share => this.change(id, { share }), file.type)
      this.dismiss(id)
      this.done(image)
    } catch (error) {
      this.change(id, { fault: asFault(error) })
    }
  }

  private change(id: number, change: Partial<Upload>): void {
    this.items = this.items.map(item => (item.id === id ? { ...item, ...change } : item))
  }
}
