import { generate } from 'lean-qr'
import { toSvgPath } from 'lean-qr/extras/svg'

/** Dark on light in both themes: many cameras read nothing else. */
export function QrCode({ text, label }: { text: string; label: string }) {
  const bitmap = generate(text)
  const side = bitmap.size + 8
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`-4 -4 ${side} ${side}`}
      shapeRendering="crispEdges"
      className="size-44 rounded-lg"
    >
      <rect x={-4} y={-4} width={side} height={side} fill="#fff" />
      <path d={toSvgPath(bitmap)} fill="#000" />
    </svg>
  )
}
