/// First in, first out; both in constant time.
struct Fifo<Element> {
    private var items: [Element?] = []
    private var head = 0

    var isEmpty: Bool { head == items.count }
    var count: Int { items.count - head }
    var first: Element? { isEmpty ? nil : items[head] }

    /// - Parameter index: from the first on.
    subscript(_ index: Int) -> Element? { items[head + index] }

    mutating func append(_ element: Element) { items.append(element) }

    mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        let element = items[head].take()
        head += 1
        if head >= 64, 2 * head >= items.count {
            items.removeFirst(head)
            head = 0
        }
        return element
    }

    mutating func removeAll() { self = Fifo() }
}
