import { drawable } from './drawable.ts'
import { ShownText } from './shown-text.tsx'

const ADDRESS_CHARS = 200

/** An image of a message, if it lies in its address: nothing is loaded from elsewhere. */
export function SentImage({ address, text }: { address: string; text: string }) {
  if (drawable(address)) return <img src={address} alt={text} className="inline-block max-h-96 max-w-full" />
  const shown = address.length > ADDRESS_CHARS ? `${address.slice(0, ADDRESS_CHARS).toWellFormed()}…` : address
  return (
    <span className="text-soft">
      Image not loaded: <ShownText text={text} /> (<ShownText text={shown} />)
    </span>
  )
}

export function SentImages({ addresses }: { addresses: readonly string[] }) {
  return addresses.map((address, at) => (
    <p key={at} className="mt-2">
      <SentImage address={address} text="image of the message" />
    </p>
  ))
}
