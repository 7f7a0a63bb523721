import SluiceCore

/// The encoding of edits in the blobs of a client replica. The numbers are part of the file format: never change or reuse one.
private enum EditKind {
    static let set: UInt8 = 1
    static let setDefault: UInt8 = 2
    static let add: UInt8 = 3
    static let become: UInt8 = 4
    static let remove: UInt8 = 5
    static let clear: UInt8 = 6
    static let insert: UInt8 = 7
    static let move: UInt8 = 8
    static let setInsert: UInt8 = 9
    static let setErase: UInt8 = 10
}

private enum ReferenceKind {
    static let none: UInt8 = 0
    static let listed: UInt8 = 1
    static let own: UInt8 = 2
    static let seen: UInt8 = 3
    /// In a path: a key instead of an element.
    static let key: UInt8 = 4
}

extension StoredValue.Writer {
    mutating func edit(_ edit: Edit) {
        string(edit.property)
        fixed(UInt32(edit.path.count))
        for step in edit.path {
            switch step {
            case .key(let key):
                byte(ReferenceKind.key)
                string(key)
            case .element(let element): reference(element)
            }
        }
        fixed(UInt32(edit.priorSize.map { $0 + 1 } ?? 0))
        action(edit.action)
    }

    private mutating func action(_ action: Edit.Action) {
        switch action {
        case .set(let value, let isDefault):
            byte(isDefault ? EditKind.setDefault : EditKind.set)
            self.value(value)
        case .add(let amount):
            byte(EditKind.add)
            fixed(amount)
        case .become(let container):
            byte(EditKind.become)
            byte(container.rawValue)
        case .remove: byte(EditKind.remove)
        case .clear(let container):
            byte(EditKind.clear)
            byte(container.rawValue)
        case .insert(let value, let after, let tag):
            byte(EditKind.insert)
            self.value(value)
            reference(after)
            fixed(tag)
        case .move(let after, let tag):
            byte(EditKind.move)
            reference(after)
            fixed(tag)
        case .setInsert(let value):
            byte(EditKind.setInsert)
            self.value(value)
        case .setErase(let value):
            byte(EditKind.setErase)
            self.value(value)
        }
    }

    private mutating func reference(_ element: ElementRef?) {
        switch element {
        case nil: byte(ReferenceKind.none)
        case .listed(let index, let hash):
            byte(ReferenceKind.listed)
            fixed(UInt32(index))
            fixed(hash.rawValue)
        case .own(let tag, let index, let hash):
            byte(ReferenceKind.own)
            fixed(tag)
            fixed(UInt32(index))
            fixed(hash.rawValue)
        case .seen(let index):
            byte(ReferenceKind.seen)
            fixed(UInt32(index))
        }
    }
}

extension StoredValue.Reader {
    /// Reads edits. Returns `nil` if the bytes are malformed.
    mutating func edits() -> [Edit]? {
        guard let count = fixed(UInt32.self) else { return nil }
        var edits: [Edit] = []
        for _ in 0..<count {
            guard let edit = edit() else { return nil }
            edits.append(edit)
        }
        return edits
    }

    private mutating func edit() -> Edit? {
        guard let property = string(), let depth = fixed(UInt32.self), depth <= Limits.nestingDepth else { return nil }
        var path: [EditStep] = []
        for _ in 0..<depth {
            guard let step = step() else { return nil }
            path.append(step)
        }
        guard let size = fixed(UInt32.self), let action = action() else { return nil }
        return Edit(property, path, action, priorSize: size == 0 ? nil : Int(size) - 1)
    }

    private mutating func step() -> EditStep? {
        guard let kind = byte() else { return nil }
        if kind == ReferenceKind.key { return string().map { .key($0) } }
        guard let element = reference(kind) else { return nil }
        return element.map { .element($0) }
    }

    private mutating func action() -> Edit.Action? {
        guard let kind = byte() else { return nil }
        switch kind {
        case EditKind.set: return value().map { .set($0, isDefault: false) }
        case EditKind.setDefault: return value().map { .set($0, isDefault: true) }
        case EditKind.add: return fixed(Int64.self).map { .add($0) }
        case EditKind.become: return byte().flatMap(Edit.Container.init(rawValue:)).map { .become($0) }
        case EditKind.remove: return .remove
        case EditKind.clear: return byte().flatMap(Edit.Container.init(rawValue:)).map { .clear($0) }
        case EditKind.insert:
            guard let value = value(), let after = byte().flatMap({ reference($0) }), let tag = fixed(UInt64.self) else { return nil }
            return .insert(value, after: after, tag: tag)
        case EditKind.move:
            guard let after = byte().flatMap({ reference($0) }), let tag = fixed(UInt64.self) else { return nil }
            return .move(after: after, tag: tag)
        case EditKind.setInsert: return value().map { .setInsert($0) }
        case EditKind.setErase: return value().map { .setErase($0) }
        default: return nil
        }
    }

    /// - Returns: `nil` if the bytes are malformed; an inner `nil` for no element.
    private mutating func reference(_ kind: UInt8) -> ElementRef?? {
        switch kind {
        case ReferenceKind.none: return .some(nil)
        case ReferenceKind.listed:
            guard let index = fixed(UInt32.self), let hash = fixed(UInt64.self) else { return nil }
            return .listed(Int(index), ValueHash(rawValue: hash))
        case ReferenceKind.own:
            guard let tag = fixed(UInt64.self), let index = fixed(UInt32.self), let hash = fixed(UInt64.self) else { return nil }
            return .own(tag, index: Int(index), ValueHash(rawValue: hash))
        case ReferenceKind.seen: return fixed(UInt32.self).map { .seen(Int($0)) }
        default: return nil
        }
    }
}
