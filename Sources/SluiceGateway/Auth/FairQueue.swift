/// A bounded queue of elements of several owners, served in turn. An owner with many elements does not delay the others.
package struct FairQueue<Element> {
    private struct Line {
        var owner: String
        var elements: [Element]
    }

    private let capacity: Int
    /// The owners' elements, in the order of their turns. No line is empty.
    private var lines: [Line] = []

    package init(capacity: Int) { self.capacity = capacity }

    package var count: Int { lines.reduce(0) { $0 + $1.elements.count } }

    /// Adds an element. Costs O(owners).
    ///
    /// - Returns: The dropped element; nil if there was room. A full queue drops the newest element of the owner with the most, or the
    ///   new one.
    package mutating func add(_ element: Element, of owner: String) -> Element? {
        var surplus: Element?
        let own = lines.firstIndex { $0.owner == owner }
        if count >= capacity {
            let most = lines.indices.max { lines[$0].elements.count < lines[$1].elements.count }
            let owned = own.map { lines[$0].elements.count } ?? 0
            guard let most, lines[most].elements.count > owned + 1 else { return element }
            // The line keeps at least one element, so the indices of the lines stay valid.
            surplus = lines[most].elements.removeLast()
        }
        if let own { lines[own].elements.append(element) } else { lines.append(Line(owner: owner, elements: [element])) }
        return surplus
    }

    /// Removes and returns the next element of the owner whose turn it is.
    package mutating func next() -> Element? {
        guard !lines.isEmpty else { return nil }
        var line = lines.removeFirst()
        let element = line.elements.removeFirst()
        if !line.elements.isEmpty { lines.append(line) }
        return element
    }
}
