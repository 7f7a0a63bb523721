import Synchronization

/// The model classes of the program, for Realms without `objectTypes`. They are found in the compiler's type tables, at the first use.
/// The tables are those of the executable and of the libraries loaded by then.
/// Left out are generic and function-local classes, and those whose `shouldIncludeInDefaultSchema` is `false`.
/// The list is empty on platforms whose runtime does not expose the tables.
enum KnownClasses {
    private static let found = Mutex<[ObjectBase.Type]?>(nil)

    /// The classes, sorted by name.
    static var all: [ObjectBase.Type] {
        // Not under the lock: finding the classes runs their own methods. Two callers at once find the same.
        if let types = found.withLock({ $0 }) { return types }
        let types = MetadataTables.subclasses(of: [Object.self, EmbeddedObject.self, AsymmetricObject.self])
            .filter { $0.shouldIncludeInDefaultSchema() }.sorted { $0.className() < $1.className() }
        found.withLock { $0 = types }
        return types
    }

    /// `true` if a class that inherits from this one has persisted properties. Excluded classes count. O(classes of the program).
    static func hasStoringSubclass(_ type: ObjectBase.Type) -> Bool {
        MetadataTables.subclasses(of: [type]).contains { DeclarationCheck.hasPersisted($0) }
    }
}

extension [ModelSchema] {
    /// The columns with an index, by class.
    var indexes: [String: Set<String>] {
        let names = map { schema in (schema.name, Set(schema.properties.filter { $0.flags.contains(.indexed) }.map(\.column))) }
        return Dictionary(names, uniquingKeysWith: { first, _ in first })
    }
}

#if os(Linux)
    /// The runtime's walk over loaded images.
    @_silgen_name("swift_enumerateAllMetadataSections")
    private func enumerateSections(
        _ visit: @convention(c) (UnsafeRawPointer, UnsafeMutableRawPointer) -> Bool, _ context: UnsafeMutableRawPointer)
#else
    /// Runtimes with Objective-C keep no such tables.
    private func enumerateSections(
        _ visit: @convention(c) (UnsafeRawPointer, UnsafeMutableRawPointer) -> Bool, _ context: UnsafeMutableRawPointer
    ) {}
#endif

/// Reads type descriptors in loaded images. Their layout is part of Swift's ABI.
private enum MetadataTables {
    /// The runtime's record of an image: version, two addresses, then ranges, of which the third contains the types.
    private struct Sections {
        var version: UInt
        var base: UnsafeRawPointer?
        var unused: UnsafeRawPointer?
        var unusedToo: UnsafeRawPointer?
        var protocols: Range
        var conformances: Range
        var types: Range
    }

    private struct Range {
        var start: UnsafeRawPointer?
        var length: Int
    }

    private typealias Visitor = @convention(c) (UnsafeRawPointer, UnsafeMutableRawPointer) -> Bool

    private final class Found {
        var classes: [UnsafeRawPointer] = []
    }

    static func subclasses(of roots: [ObjectBase.Type]) -> [ObjectBase.Type] {
        let found = Found()
        enumerateSections(visitSections, Unmanaged.passUnretained(found).toOpaque())
        var isModel: [UnsafeRawPointer: Bool] = [:]
        for root in roots { isModel[descriptor(of: root)] = true }
        let rootDescriptors = Set(isModel.keys)
        return found.classes.compactMap { descriptor in
            guard !rootDescriptors.contains(descriptor), inherits(descriptor, known: &isModel), !isGeneric(descriptor) else { return nil }
            return type(of: descriptor)
        }
    }

    private static let visitSections: Visitor = { sections, context in
        let found = Unmanaged<Found>.fromOpaque(context).takeUnretainedValue()
        let types = sections.load(as: Sections.self).types
        guard let start = types.start else { return true }
        for offset in stride(from: 0, to: types.length, by: 4) {
            let record = start + offset
            let value = record.load(as: Int32.self)
            // The low bits are the kind of reference. 0 is a direct one, which is the rule within an image.
            guard value & 3 == 0, value != 0 else { continue }
            let descriptor = record + Int(value)
            if kind(descriptor) == classKind { found.classes.append(descriptor) }
        }
        return true
    }

    // MARK: Descriptors

    private static let classKind: UInt32 = 16

    private static func kind(_ descriptor: UnsafeRawPointer) -> UInt32 { descriptor.load(as: UInt32.self) & 0x1F }
    private static func isGeneric(_ descriptor: UnsafeRawPointer) -> Bool { descriptor.load(as: UInt32.self) & 0x80 != 0 }

    private static func relative(_ field: UnsafeRawPointer) -> UnsafeRawPointer? {
        let offset = field.load(as: Int32.self)
        return offset == 0 ? nil : field + Int(offset)
    }

    /// Returns the descriptor from a class's metadata without Objective-C: kind, superclass, flags, sizes, then the descriptor.
    private static func descriptor(of type: ObjectBase.Type) -> UnsafeRawPointer {
        unsafeBitCast(type as AnyClass, to: UnsafeRawPointer.self).load(fromByteOffset: 40, as: UnsafeRawPointer.self)
    }

    /// `true` if a class inherits from a known model class. Follows the names of superclasses without instantiating their metadata.
    private static func inherits(_ descriptor: UnsafeRawPointer, known: inout [UnsafeRawPointer: Bool]) -> Bool {
        if let answer = known[descriptor] { return answer }
        // Set before the recursion, so that a cycle ends it.
        known[descriptor] = false
        // The layout is flags, parent, name, accessor, fields, then the mangled name of the superclass.
        guard let name = relative(descriptor + 20), let superclass = superclass(name) else { return false }
        let answer = inherits(superclass, known: &known)
        known[descriptor] = answer
        return answer
    }

    /// Returns the descriptor in a mangled name: 1 marks one in this image, 2 one behind a pointer; nil for other names.
    private static func superclass(_ name: UnsafeRawPointer) -> UnsafeRawPointer? {
        let target = (name + 1).loadUnaligned(as: Int32.self)
        switch name.load(as: UInt8.self) {
        case 1: return name + 1 + Int(target)
        case 2: return (name + 1 + Int(target)).load(as: UnsafeRawPointer?.self)
        default: return nil
        }
    }

    /// Returns the class by its metadata accessor.
    private static func type(of descriptor: UnsafeRawPointer) -> ObjectBase.Type? {
        typealias Response = (metadata: UnsafeRawPointer, state: Int)
        typealias Accessor = @convention(thin) (Int) -> Response
        guard let accessor = relative(descriptor + 12) else { return nil }
        let response = unsafeBitCast(accessor, to: Accessor.self)(0)
        return unsafeBitCast(response.metadata, to: AnyClass.self) as? ObjectBase.Type
    }
}
