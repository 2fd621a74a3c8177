/** A tachometer. */
export function Logo({ className = 'size-5' }: { className?: string }) {
  return (
    <svg
      viewBox="0 0 32 32"
      fill="none"
      stroke="currentColor"
      strokeWidth="3"
      strokeLinecap="round"
      aria-hidden
      className={`text-accent ${className}`}
    >
      <circle cx="16" cy="16" r="12.5" />
      <path d="M16 16 22 9" />
      <circle cx="16" cy="16" r="2.5" fill="currentColor" stroke="none" />
    </svg>
  )
}
