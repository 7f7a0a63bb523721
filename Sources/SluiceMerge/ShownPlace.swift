package import SluiceCore

/// A step into a value as an app sees it.
package enum ShownStep: Hashable, Sendable {
    case index(Int)
    case key(String)
}

/// A place inside of a property's value as a device shows it, and its name for the gateway.
package struct ShownPlace: Sendable {
    package private(set) var path: [EditStep] = []
    package private(set) var value: Value
    private var clock: PropertyClock

    /// - Parameter state: The state from `Overlay.state`, with the changes since.
    /// - Returns: `nil` if there is no such place.
    package init?(_ state: ObjectState, _ property: Property, _ steps: some Sequence<ShownStep>) {
        guard let values = state.values else { return nil }
        value = values[property.name] ?? .null
        clock = state.clocks.properties[property.id] ?? .unwritten
        if !enter(steps) { return nil }
    }

    init(_ path: [EditStep], _ value: Value, _ clock: PropertyClock) { (self.path, self.value, self.clock) = (path, value, clock) }

    /// - Returns: false when one of the steps leads to nothing.
    mutating func enter(_ steps: some Sequence<ShownStep>) -> Bool {
        for step in steps {
            guard enter(step) else { return false }
        }
        return true
    }

    /// - Returns: `false` if there is no such place. A missing key of a dictionary gives null.
    private mutating func enter(_ step: ShownStep) -> Bool {
        switch (step, value) {
        case (.key(let key), .dictionary(let fields)):
            path.append(.key(key))
            value = fields[key] ?? .null
            clock = clock.entry(key) ?? .unwritten
        case (.index(let index), .list(let elements)) where elements.indices.contains(index):
            path.append(.element(element(index) ?? .seen(index)))
            let list = clock.list(of: elements.count)
            value = elements[index]
            clock = list.places[list.elements[index].first].value?.clock ?? PropertyClock(stamp: .zero)
        default: return false
        }
        return true
    }

    /// The name of an element of this list. `nil` if the index is out of range.
    package func element(_ index: Int) -> ElementRef? {
        guard case .list(let elements) = value, elements.indices.contains(index) else { return nil }
        let list = clock.list(of: elements.count)
        let place = list.places[list.elements[index].first]
        let hash = place.serverHash ?? ValueHash(elements[index])
        return place.stamp.client == .server ? .listed(Int(place.tag), hash) : .own(place.tag, index: index, hash)
    }
}

extension ListClock.Place {
    /// The hash of the server's value, by which a device names the element. `nil` if that is the shown value.
    var serverHash: ValueHash? {
        // The device's own changes have no position. Below them, the server may have another value than the shown one.
        guard let original, original.until == LSN.max || value?.lsn == LSN.max else { return nil }
        return original.hash
    }
}
