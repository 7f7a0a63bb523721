import SluiceCore
import SwiftProtobuf

extension PBEdit {
    /// - Throws: `unknownProperty` if the class lacks the edited property.
    init(_ edit: Edit, type: ObjectType) throws(SluiceError) {
        self.init()
        property = try type.number(of: edit.property)
        path = edit.path.map { PBPathStep($0) }
        if let size = edit.priorSize { priorSize = UInt32(clamping: size) + 1 }
        action =
            switch edit.action {
            case .set(let value, let isDefault): isDefault ? .setDefault(PBValue(value)) : .set(PBValue(value))
            case .add(let amount): .add(amount)
            case .become(let container): .become(PBContainer(container))
            case .remove: .remove(true)
            case .clear(let container): .clear(PBContainer(container))
            case .insert(let value, let after, let tag):
                .insert(
                    PBListInsert.with {
                        $0.value = PBValue(value)
                        if let after { $0.after = PBElementRef(after) }
                        $0.tag = tag
                    })
            case .move(let after, let tag):
                .move(
                    PBListMove.with {
                        if let after { $0.after = PBElementRef(after) }
                        $0.tag = tag
                    })
            case .setInsert(let value): .setInsert(PBValue(value))
            case .setErase(let value): .setErase(PBValue(value))
            }
    }
}

extension PBPathStep {
    fileprivate init(_ step: EditStep) {
        self.init()
        kind =
            switch step {
            case .key(let key): .key(key)
            case .element(let element): .element(PBElementRef(element))
            }
    }
}

extension PBElementRef {
    fileprivate init(_ element: ElementRef) {
        self.init()
        switch element {
        case .listed(let index, let hash):
            place = .listed(UInt32(clamping: index))
            self.hash = hash.rawValue
        case .own(let tag, let index, let hash):
            place = .own(tag)
            self.index = UInt32(clamping: index)
            self.hash = hash.rawValue
        case .seen(let index): place = .seen(UInt32(clamping: index))
        }
    }
}

extension PBContainer {
    fileprivate init(_ container: Edit.Container) {
        self =
            switch container {
            case .list: .list
            case .set: .set
            case .dictionary: .dictionary
            case .object: .object
            }
    }
}

extension Edit {
    /// Decodes an edit and checks it against the schema.
    /// - Throws: `badChangeset` for an edit that is empty or does not fit its place; `unknownProperty` or `wrongValueType` if it
    ///   contradicts the schema; `badSyntax` for malformed values.
    init(_ message: PBEdit, type: ObjectType, schema: Schema) throws(SluiceError) {
        let property = try type.property(number: message.property)
        guard message.path.count <= Limits.nestingDepth else { throw .malformed("an edit is nested too deep") }
        let path = try message.path.map { step throws(SluiceError) in try EditStep(step) }
        let action = try Action(message, in: type)
        self.init(property.name, path, action, priorSize: message.priorSize == 0 ? nil : Int(message.priorSize) - 1)
        try EditedPlace(property, path, in: schema).check(action, type: type, in: schema)
    }
}

extension Edit.Action {
    fileprivate init(_ message: PBEdit, in type: ObjectType) throws(SluiceError) {
        switch message.action {
        case .set(let value): self = .set(try Value(value), isDefault: false)
        case .setDefault(let value): self = .set(try Value(value), isDefault: true)
        case .add(let amount): self = .add(amount)
        case .become(let container): self = .become(try Edit.Container(container))
        case .remove: self = .remove
        case .clear(let container): self = .clear(try Edit.Container(container))
        case .insert(let m):
            self = .insert(try Value(m.value), after: m.hasAfter ? try ElementRef(m.after) : nil, tag: m.tag)
        case .move(let m): self = .move(after: m.hasAfter ? try ElementRef(m.after) : nil, tag: m.tag)
        case .setInsert(let value): self = .setInsert(try Value(value))
        case .setErase(let value): self = .setErase(try Value(value))
        case nil: throw SluiceError(.badChangeset, "A change inside of \(type.name) is empty.")
        }
    }
}

extension EditStep {
    fileprivate init(_ message: PBPathStep) throws(SluiceError) {
        switch message.kind {
        case .key(let key): self = .key(key)
        case .element(let element): self = .element(try ElementRef(element))
        case nil: throw .malformed("a step of a path is empty")
        }
    }
}

extension ElementRef {
    fileprivate init(_ message: PBElementRef) throws(SluiceError) {
        let hash = ValueHash(rawValue: message.hash)
        switch message.place {
        case .listed(let index): self = .listed(Int(index), hash)
        case .own(let tag): self = .own(tag, index: Int(message.index), hash)
        case .seen(let index): self = .seen(Int(index))
        case nil: throw .malformed("an element of a list is not named")
        }
    }
}

extension Edit.Container {
    fileprivate init(_ message: PBContainer) throws(SluiceError) {
        switch message {
        case .list: self = .list
        case .set: self = .set
        case .dictionary: self = .dictionary
        case .object: self = .object
        case .unspecified, .UNRECOGNIZED: throw .malformed("a container has no kind")
        }
    }
}
