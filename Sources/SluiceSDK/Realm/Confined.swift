/// Carries a value to the scheduler that it is confined to.
// Sendable because: the creator sends it only to the scheduler that its content belongs to.
struct Confined<Content>: @unchecked Sendable {
    let content: Content
    init(_ content: Content) { self.content = content }
}

/// A `Confined` that does not retain its content.
final class WeakConfined<Content: AnyObject>: @unchecked Sendable {  // Sendable because: the same condition holds as for `Confined`.
    weak var content: Content?
    init(_ content: Content) { self.content = content }
}
