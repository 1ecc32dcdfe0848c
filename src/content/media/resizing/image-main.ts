/**
 * The image thread: prepares one uploaded image at a time.
 *
 * Started by `image-thread.ts`, never imported. Never fails for a file; a file that cannot be used is answered with its fault.
 */
import { describeError } from '../../../core/errors.js'
import { ownThread, stepAside, type OwnThread } from '../../../world/threads.js'
import { ImageFault } from '../reading/image.js'
import type { ImageAnswer, ImageTask } from './image-thread.js'
import { prepareImage } from './prepare-image.js'

function serve(thread: OwnThread): void {
  thread.listen(message => {
    const { octets, maxPixels } = message as ImageTask
    void prepareImage(octets, maxPixels).then(
      image => {
        const files = [image.original, ...image.variants]
        const buffers = files.map(file => file.octets.buffer as ArrayBuffer)
        thread.post({ image } satisfies ImageAnswer, buffers)
      },
      (error: unknown) =>
        thread.post(
          (error instanceof ImageFault
            ? { fault: error.message }
            : { error: describeError(error) }) satisfies ImageAnswer,
        ),
    )
  })
}

stepAside()
serve(ownThread())
