/**
 * Decoders and encoders: WebAssembly builds of MozJPEG, libwebp and Rust's png.
 *
 * Used in the image thread only. A file that exploits a fault of a decoder stays inside its WebAssembly memory. Each codec is loaded when
 * it is first needed. @throws any Error for a file that cannot be decoded
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename } from 'node:path'
import openJpegDecoder from '@jsquash/jpeg/codec/dec/mozjpeg_dec.js'
import openJpegEncoder from '@jsquash/jpeg/codec/enc/mozjpeg_enc.js'
import { defaultOptions as JPEG_OPTIONS } from '@jsquash/jpeg/meta.js'
import {
  decode as decodePng,
  encode as encodePng,
  initSync as openPng,
} from '@jsquash/png/codec/pkg/squoosh_png.js'
import openWebpDecoder from '@jsquash/webp/codec/dec/webp_dec.js'
import openWebpEncoder from '@jsquash/webp/codec/enc/webp_enc.js'
import { defaultOptions as WEBP_OPTIONS } from '@jsquash/webp/meta.js'
import { embeddedFile } from '../../../world/embedded/embedded-files.js'

/** RGBA, 4 octets a pixel, rows from the top. */
export interface Pixels {
  readonly data: Uint8ClampedArray
  readonly width: number
  readonly height: number
}

export interface Codec {
  decode(octets: Uint8Array): Promise<Pixels>
  encode(pixels: Pixels): Promise<Uint8Array>
}

const QUALITY = 82
/** Of 0 to 6. */
const WEBP_EFFORT = 4

/** Files of the packages, by where they lie in them; in the executable by their last part. */
const FILES = {
  jpegDecoder: '@jsquash/jpeg/codec/dec/mozjpeg_dec.wasm',
  jpegEncoder: '@jsquash/jpeg/codec/enc/mozjpeg_enc.wasm',
  png: '@jsquash/png/codec/pkg/squoosh_png_bg.wasm',
  webpDecoder: '@jsquash/webp/codec/dec/webp_dec.wasm',
  webpEncoder: '@jsquash/webp/codec/enc/webp_enc.wasm',
} as const

/** The part of the WebAssembly API that is used; the types of Node have none of it. */
interface WasmApi {
  Module: new (octets: Uint8Array) => object
  Instance: new (module: object, imports: unknown) => { readonly exports: unknown }
}
const { Module, Instance } = (globalThis as unknown as { readonly WebAssembly: WasmApi }).WebAssembly

function compiled(file: string): object {
  const inside = embeddedFile(basename(file))
  return new Module(inside ?? readFileSync(createRequire(import.meta.url).resolve(file)))
}

/** A module of Emscripten, opened. Its own types need those of browsers. */
type OpenModule<Exports> = (options: object) => Promise<Exports>
interface Decoder {
  decode(octets: Uint8Array, isTurnedUpright?: boolean): Pixels | null
}
interface Encoder {
  encode(data: Uint8ClampedArray, width: number, height: number, options: object): Uint8Array | null
}

function opened<Exports>(open: unknown, file: string): () => Promise<Exports> {
  return once(() => {
    const module = compiled(file)
    return (open as OpenModule<Exports>)({
      noInitialRun: true,
      // A decoder's complaints about a file do not belong in the log.
      print: () => {},
      printErr: () => {},
      instantiateWasm(imports: unknown, received: (instance: object) => void) {
        const instance = new Instance(module, imports)
        received(instance)
        return instance.exports
      },
    })
  })
}

function once<T>(open: () => T): () => T {
  let value: T | undefined
  return () => (value ??= open())
}

const jpegDecoder = opened<Decoder>(openJpegDecoder, FILES.jpegDecoder)
const jpegEncoder = opened<Encoder>(openJpegEncoder, FILES.jpegEncoder)
const webpDecoder = opened<Decoder>(openWebpDecoder, FILES.webpDecoder)
const webpEncoder = opened<Encoder>(openWebpEncoder, FILES.webpEncoder)
const png = once(() => openPng(compiled(FILES.png) as never))

export const CODECS: Readonly<Record<'jpeg' | 'png' | 'webp', Codec>> = {
  jpeg: {
    decode: async octets => found((await jpegDecoder()).decode(octets, true)),
    async encode({ data, width, height }) {
      const options = { ...JPEG_OPTIONS, quality: QUALITY }
      return Uint8Array.from(found((await jpegEncoder()).encode(data, width, height, options)))
    },
  },
  png: {
    decode(octets) {
      png()
      return Promise.resolve(decodePng(octets))
    },
    encode({ data, width, height }) {
      png()
      return Promise.resolve(encodePng(octetsOf(data), width, height, 8))
    },
  },
  webp: {
    decode: async octets => found((await webpDecoder()).decode(octets)),
    async encode({ data, width, height }) {
      const options = { ...WEBP_OPTIONS, quality: QUALITY, method: WEBP_EFFORT }
      return Uint8Array.from(found((await webpEncoder()).encode(data, width, height, options)))
    },
  },
}

function found<T>(result: T | null): T {
  if (result === null) throw new Error('the codec gave nothing')
  return result
}

function octetsOf(data: Uint8ClampedArray): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
}
