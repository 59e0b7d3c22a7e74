/* What sets of cosine coefficients say about the gap: evidence of a process and of a dyadic partition, and the
   expected gap on each side. calibrant.posterior has the same in numpy, and says why. */
#include "lanes.h"

#ifdef HAVE_LANES

/* Sizes of a flat gap in a node, of a wave, and of a process; priors of the tree: sparse and dense. */
enum { FLATS = 5, WAVES = 4, SIZES = 8, TREES = 2 };
/* Smallest number of cells of a node with a cosine. */
enum { SHORTEST = 8 };
/* The columns of the result: before those of the mean, and of the shape of a process. */
enum { PROCESS, TREE, SMOOTH_OVER, SMOOTH_UNDER, TREE_OVER, TREE_UNDER, MEANS };

/* Numbers of the prior, in the order of `_rules` in calibrant.posterior.gap. */
typedef struct {
    double flat[FLATS], wave[WAVES];
    double stop, go, empty[TREES], flat_share;
    double log_no_mean, log_some_mean, log_no_shape, log_some_shape, uncertain;
} Rules;

/* What does not depend on the sets, but on their scores: for the frame of all lanes, or for one in each. */
typedef struct {
    Py_ssize_t cells, depth, roughs, parts; /* parts: sizes times roughnesses of a process */
    const Rules *rules;
    const double *turns, *shape_prior, *mean_prior;
    double *variance, *cost, *pull, *pulled;   /* of flat gaps in each node; pull of cells and nodes */
    double *wave_share, *wave_mean, *wave_cost, *wave_spectrum;
    double *share, *shape_cost, *mean_share, *mean_cost;
} Frame;

/* Numbers of the sets that are looked at together. */
typedef struct {
    Lanes *z, *square, *x, *shrink, *mean, *work, *sums;
    Lanes *gapped, *gapped_power, *stop, *power, *chance, *reach, *above, *below, *shape, *out;
} Sets;

#define NODE(level, i) (((Py_ssize_t)1 << (level)) - 1 + (i))

/* A number of the frame at place i: the same in all lanes, or one for each. */
PART Lanes of(const double *array, Py_ssize_t i, int width)
{
    return width == 1 ? all(array[i]) : load(array + i * LANES);
}

PART double log_of(double x)
{
    return logarithm(all(x))[0];
}

/* log(1 + signal) summed, many factors at a time: a logarithm costs more than a product. */
#define FACTORS 8

PART void set_frame(Frame *f, int width, const double *const *pulls, const double *const *sizes,
                    const double *const *means, const double *spectra, const double *wave_spectra)
{
    Py_ssize_t g = f->cells, high = g - 1;
    const Rules *rules = f->rules;
    double *squares = f->cost; /* lent: sums of squared pulls of the nodes */
    for (int l = 0; l < width; l++) {
        double total = 0;
        for (Py_ssize_t i = 0; i < g; i++) {
            double pull = pulls[l][i];
            total += pull;
            f->pull[i * width + l] = pull;
            f->pulled[NODE(f->depth, i) * width + l] = pull;
        }
        total /= (double)g;
        for (Py_ssize_t level = f->depth; level-- > 0;)
            for (Py_ssize_t i = 0; i < (Py_ssize_t)1 << level; i++)
                f->pulled[NODE(level, i) * width + l] = f->pulled[NODE(level + 1, 2 * i) * width + l]
                                                        + f->pulled[NODE(level + 1, 2 * i + 1) * width + l];
        /* Waves of the nodes of each level. */
        for (Py_ssize_t level = 1, at = 0; g >> level >= SHORTEST; level++) {
            Py_ssize_t length = g >> level;
            double unit = (double)length * (total * total);
            for (int w = 0; w < WAVES; w++) {
                Py_ssize_t to = level * WAVES + w;
                double size = rules->wave[w] * unit, cost = 0, product = 1;
                f->wave_share[to * width + l] = size / (1 + size);
                f->wave_mean[to * width + l] = rules->log_some_mean - 0.5 * log_of(1 + size);
                for (Py_ssize_t k = 0; k < length - 1; k++) {
                    double signal = size * wave_spectra[at + k];
                    f->wave_spectrum[(at * WAVES + w * (length - 1) + k) * width + l] = signal / (1 + signal);
                    product *= 1 + signal;
                    if (k % FACTORS == FACTORS - 1 || k == length - 2) {
                        cost += log_of(product);
                        product = 1;
                    }
                }
                f->wave_cost[to * width + l] = rules->log_some_shape - 0.5 * cost;
            }
            at += length - 1;
        }
        for (Py_ssize_t q = 0; q < f->parts; q++) {
            double size = sizes[l][q / f->roughs], cost = 0, product = 1;
            const double *spectrum = spectra + q % f->roughs * high;
            for (Py_ssize_t k = 0; k < high; k++) {
                double signal = size * spectrum[k];
                f->share[(q * high + k) * width + l] = signal / (1 + signal);
                product *= 1 + signal;
                if (k % FACTORS == FACTORS - 1 || k == high - 1) {
                    cost += log_of(product);
                    product = 1;
                }
            }
            f->shape_cost[q * width + l] = cost;
        }
        for (int s = 0; s < SIZES; s++) {
            f->mean_share[s * width + l] = means[l][s] / (1 + means[l][s]);
            f->mean_cost[s * width + l] = log_of(1 + means[l][s]);
        }
    }
    /* Flat gaps, last: `squares` is lent from their costs. */
    for (int l = 0; l < width; l++) {
        for (Py_ssize_t i = 0; i < g; i++) {
            double pull = f->pull[i * width + l];
            squares[NODE(f->depth, i) * FLATS * width + l] = pull * pull;
        }
        for (Py_ssize_t level = f->depth; level-- > 0;)
            for (Py_ssize_t i = 0; i < (Py_ssize_t)1 << level; i++)
                squares[NODE(level, i) * FLATS * width + l]
                    = squares[NODE(level + 1, 2 * i) * FLATS * width + l]
                      + squares[NODE(level + 1, 2 * i + 1) * FLATS * width + l];
    }
    for (Py_ssize_t i = 0; i < 2 * g - 1; i++)
        for (int l = 0; l < width; l++) {
            double square = squares[i * FLATS * width + l];
            for (int s = 0; s < FLATS; s++) {
                double scaled = 1 + square * rules->flat[s];
                f->variance[(i * FLATS + s) * width + l] = rules->flat[s] / scaled;
                f->cost[(i * FLATS + s) * width + l] = -0.5 * log_of(scaled) - 1.6094379124341003;
            }
        }
}

/* From orthonormal coefficients to numbers. */
PART void orthonormal_back(Lanes *x, Py_ssize_t n, const double *turns, Lanes *work)
{
    double first = sqrt(1.0 / (double)n), other = sqrt(2.0 / (double)n);
    for (Py_ssize_t k = 0; k < n; k++)
        x[k] *= k ? other : first;
    cosines_back(x, n, turns, work);
}

/* The standard deviation in each cell of coefficients with these variances: see `spread_of`. Even frequencies alone
   are in it, so that the second half of the cells mirrors the first. */
PART void spread(const Lanes *shrink, Lanes *sd, Py_ssize_t n, const double *turns, Lanes *work)
{
    Py_ssize_t half = n / 2;
    double share = 1.0 / (double)n;
    Lanes total = {0};
    for (Py_ssize_t k = 0; k < n; k++)
        total += shrink[k];
    sd[0] = all(0.0);
    for (Py_ssize_t k = 1; k < half; k++)
        sd[k] = (shrink[k] - shrink[n - k]) / 2;
    cosines_back(sd, half, turns, work);
    for (Py_ssize_t k = 0; k < half; k++)
        sd[k] = sd[n - 1 - k] = root(larger((total + 2 * sd[k]) * share, all(0.0)));
}

/* Turn logs into weights that sum to one, in proportion to exp(log + prior); return that sum without a power of two. */
PART Lanes weigh(Lanes *log, const double *prior, Py_ssize_t count, Lanes *power)
{
    Lanes top, total = {0};
    for (Py_ssize_t q = 0; q < count; q++)
        log[q] += prior[q];
    top = log[0];
    for (Py_ssize_t q = 1; q < count; q++)
        top = larger(top, log[q]);
    *power = power_in(top);
    for (Py_ssize_t q = 0; q < count; q++) {
        log[q] = exponential_without(log[q], *power);
        total += log[q];
    }
    for (Py_ssize_t q = 0; q < count; q++)
        log[q] *= 1 / total;
    return total;
}

/* Sums over k of share_qk square_k for four spectra q at a time: no sum waits for the one before. */
PART void weighted(const double *share, const Lanes *square, Py_ssize_t parts, Py_ssize_t high, Lanes *sums, int width)
{
    for (Py_ssize_t q = 0; q < parts; q += 4) {
        const double *row = share + q * high * width;
        Lanes a = {0}, b = {0}, c = {0}, d = {0};
        for (Py_ssize_t k = 0; k < high; k++) {
            a += of(row, k, width) * square[k];
            b += of(row, high + k, width) * square[k];
            c += of(row, 2 * high + k, width) * square[k];
            d += of(row, 3 * high + k, width) * square[k];
        }
        sums[q] = a;
        sums[q + 1] = b;
        sums[q + 2] = c;
        sums[q + 3] = d;
    }
}

/* The share of each coefficient that belongs to the gap: weighted over spectra, four at a time. */
PART void shrinkage(const double *share, const Lanes *weight, Py_ssize_t parts, Py_ssize_t high, Lanes *shrink, int width)
{
    for (Py_ssize_t k = 0; k < high; k++)
        shrink[k] = all(0.0);
    for (Py_ssize_t q = 0; q < parts; q += 4) {
        const double *row = share + q * high * width;
        for (Py_ssize_t k = 0; k < high; k++)
            shrink[k] += (of(row, k, width) * weight[q] + of(row, high + k, width) * weight[q + 1])
                         + (of(row, 2 * high + k, width) * weight[q + 2] + of(row, 3 * high + k, width) * weight[q + 3]);
    }
}

PART void look_at_process(const Frame *f, const Sets *s, int sides, int width)
{
    Py_ssize_t g = f->cells;
    Lanes means[SIZES + 1], evidence, power, more, under = {0}, net = {0}, *out = s->out;
    double uncertain = f->rules->uncertain;
    means[0] = out[MEANS] = all(0.0);
    for (int m = 0; m < SIZES; m++)
        means[m + 1] = out[MEANS + m + 1] = 0.5 * (of(f->mean_share, m, width) * s->square[0] - of(f->mean_cost, m, width));
    evidence = weigh(means, f->mean_prior, SIZES + 1, &power);
    weighted(f->share, s->square + 1, f->parts, g - 1, s->shape + 1, width);
    s->shape[0] = out[MEANS + SIZES + 1] = all(0.0);
    for (Py_ssize_t q = 0; q < f->parts; q++)
        s->shape[q + 1] = out[MEANS + SIZES + 2 + q] = 0.5 * (s->shape[q + 1] - of(f->shape_cost, q, width));
    evidence *= weigh(s->shape, f->shape_prior, f->parts + 1, &more);
    out[PROCESS] = logarithm_with(evidence, power + more);
    if (!sides)
        return;
    s->shrink[0] = all(0.0);
    for (int m = 0; m < SIZES; m++)
        s->shrink[0] += means[m + 1] * of(f->mean_share, m, width);
    shrinkage(f->share, s->shape + 1, f->parts, g - 1, s->shrink + 1, width);
    for (Py_ssize_t k = 0; k < g; k++)
        s->mean[k] = s->shrink[k] * s->z[k];
    orthonormal_back(s->mean, g, f->turns, s->work);
    spread(s->shrink, s->x, g, f->turns, s->work);
    for (Py_ssize_t k = 0; k < g; k++) {
        under += uncertain * positive_part(s->mean[k], s->x[k]) + (1 - uncertain) * larger(s->mean[k], all(0.0));
        net += s->mean[k];
    }
    out[SMOOTH_UNDER] = under;
    out[SMOOTH_OVER] = under - net;
}

/* A wave in each node of a level: its likelihood, in place of that of stopping; and the expected sum of its positive and negative part. */
PART void look_at_waves(const Frame *f, const Sets *s, Py_ssize_t level, Py_ssize_t at, int sides, int width)
{
    const double none[1 + WAVES] = {0}, *spectrum = f->wave_spectrum + at * WAVES * width;
    const Rules *rules = f->rules;
    Py_ssize_t length = f->cells >> level;
    Lanes *z = s->mean, *square = s->shrink, *shrink = s->shrink, *sd = s->shrink + length;
    for (Py_ssize_t i = 0; i < (Py_ssize_t)1 << level; i++) {
        Lanes means[1 + WAVES], shapes[1 + WAVES], power, more, above = {0}, net = {0};
        memcpy(z, s->x + i * length, length * sizeof(Lanes));
        orthonormal(z, length, f->turns, s->work);
        for (Py_ssize_t k = 0; k < length; k++)
            square[k] = z[k] * z[k];
        means[0] = all(rules->log_no_mean);
        shapes[0] = all(rules->log_no_shape);
        weighted(spectrum, square + 1, WAVES, length - 1, shapes + 1, width);
        for (int w = 0; w < WAVES; w++) {
            Py_ssize_t of_level = level * WAVES + w;
            means[w + 1] = 0.5 * (of(f->wave_share, of_level, width) * square[0]) + of(f->wave_mean, of_level, width);
            shapes[w + 1] = 0.5 * shapes[w + 1] + of(f->wave_cost, of_level, width);
        }
        s->gapped[NODE(level, i)] = weigh(means, none, 1 + WAVES, &power) * weigh(shapes, none, 1 + WAVES, &more);
        s->gapped_power[NODE(level, i)] = power + more;
        if (!sides)
            continue;
        shrink[0] = all(0.0);
        for (int w = 0; w < WAVES; w++)
            shrink[0] += means[w + 1] * of(f->wave_share, level * WAVES + w, width);
        shrinkage(spectrum, shapes + 1, WAVES, length - 1, shrink + 1, width);
        for (Py_ssize_t k = 0; k < length; k++)
            z[k] *= shrink[k];
        orthonormal_back(z, length, f->turns, s->work);
        spread(shrink, sd, length, f->turns, s->work);
        for (Py_ssize_t k = 0; k < length; k++) {
            above += positive_part(z[k], sd[k]);
            net += z[k];
        }
        s->above[NODE(level, i)] = above;
        s->below[NODE(level, i)] = above - net;
    }
}

/* The nodes of a level with a gap, flat or a wave. Leaves their likelihood, as a number and a power of two, and the
   expected positive and negative part of the gap. */
PART void gaps_at(const Frame *f, const Sets *s, Py_ssize_t level, int waves, int sides, int width)
{
    double flat = waves ? f->rules->flat_share : 1.0;
    for (Py_ssize_t i = NODE(level, 0); i < NODE(level + 1, 0); i++) {
        Lanes square = s->sums[i] * s->sums[i], log[FLATS], top = {0}, power;
        Lanes sum = {0}, slope = {0}, bend = {0}, wave = {0}, total;
        for (int q = 0; q < FLATS; q++) {
            log[q] = (0.5 * square) * of(f->variance, i * FLATS + q, width) + of(f->cost, i * FLATS + q, width);
            top = larger(top, log[q]);
        }
        power = power_in(top);
        if (waves) {
            power = larger(power, s->gapped_power[i]);
            wave = scaled((1 - flat) * s->gapped[i], s->gapped_power[i] - power);
        }
        for (int q = 0; q < FLATS; q++) {
            Lanes weight = exponential_without(log[q], power);
            sum += weight;
            if (sides) {
                Lanes variance = of(f->variance, i * FLATS + q, width);
                slope += weight * variance;
                bend += weight * (variance * variance);
            }
        }
        total = flat * sum + wave;
        s->gapped[i] = total;
        s->gapped_power[i] = power;
        if (sides) {
            Lanes even = flat * sum / total * of(f->pulled, i, width), mean, up;
            slope /= sum;
            mean = slope * s->sums[i];
            up = positive_part(mean, root(slope + square * larger(bend / sum - slope * slope, all(0.0))));
            s->above[i] = waves ? even * up + wave / total * s->above[i] : even * up;
            s->below[i] = waves ? even * (up - mean) + wave / total * s->below[i] : even * (up - mean);
        }
    }
}

/* Sum one tree over all partitions: returns its likelihood as a number and a power of two, and adds its share of the
   expected sides. */
PART Lanes sum_tree(const Frame *f, const Sets *s, double empty, int sides, Lanes *power_of_all, Lanes *under, Lanes *over)
{
    const Rules *rules = f->rules;
    Py_ssize_t leaves = NODE(f->depth, 0), nodes = leaves + f->cells;
    Lanes likelihood;
    *under = *over = all(0.0);
    /* The whole of the scores has a gap: none anywhere is a model of its own. */
    s->stop[0] = s->gapped[0];
    s->power[0] = s->gapped_power[0];
    for (Py_ssize_t i = 1; i < nodes; i++) {
        s->stop[i] = (1 - empty) * s->gapped[i] + empty * scaled(all(1.0), -s->gapped_power[i]);
        s->power[i] = s->gapped_power[i];
    }
    for (Py_ssize_t i = 0; sides && i < nodes; i++)
        s->reach[i] = (i ? 1 - empty : 1.0) * s->gapped[i] / s->stop[i];
    /* Bottom up: the likelihood of each node, and its chance to stop if it is reached; that of a cell is one. */
    for (Py_ssize_t i = leaves; i-- > 0;) {
        Lanes halves = rules->go * (s->stop[2 * i + 1] * s->stop[2 * i + 2]), stop = rules->stop * s->stop[i];
        Lanes power = s->power[2 * i + 1] + s->power[2 * i + 2], top = larger(power, s->power[i]);
        stop = scaled(stop, s->power[i] - top);
        halves = scaled(halves, power - top);
        s->chance[i] = stop / (stop + halves);
        s->stop[i] = apart_from_power(stop + halves, &top);
        s->power[i] = top;
    }
    likelihood = s->stop[0];
    *power_of_all = s->power[0];
    if (!sides)
        return likelihood;
    /* Top down: the chance of each node to be reached, which takes the place of its likelihood. */
    s->stop[0] = all(1.0);
    for (Py_ssize_t i = 0; i < leaves; i++)
        s->stop[2 * i + 1] = s->stop[2 * i + 2] = s->stop[i] * (1 - s->chance[i]);
    for (Py_ssize_t i = 0; i < nodes; i++) {
        Lanes stops = (i < leaves ? s->stop[i] * s->chance[i] : s->stop[i]) * s->reach[i];
        *under += stops * s->above[i];
        *over += stops * s->below[i];
    }
    return likelihood;
}

PART void look_at_tree(const Frame *f, const Sets *s, int sides, int width)
{
    Py_ssize_t g = f->cells, depth = f->depth, leaves = NODE(depth, 0);
    Lanes likelihood[TREES], power[TREES], under[TREES], over[TREES], top, total = {0};
    memcpy(s->x, s->z, g * sizeof(Lanes));
    orthonormal_back(s->x, g, f->turns, s->work);
    for (Py_ssize_t i = 0; i < g; i++)
        s->sums[leaves + i] = of(f->pull, i, width) * s->x[i];
    for (Py_ssize_t i = leaves; i-- > 0;)
        s->sums[i] = s->sums[2 * i + 1] + s->sums[2 * i + 2];
    for (Py_ssize_t level = 0, at = 0; level <= depth; level++) {
        int waves = level && g >> level >= SHORTEST;
        if (waves) {
            look_at_waves(f, s, level, at, sides, width);
            at += (g >> level) - 1;
            gaps_at(f, s, level, 1, sides, width);
        } else
            gaps_at(f, s, level, 0, sides, width);
    }
    for (int t = 0; t < TREES; t++) {
        likelihood[t] = sum_tree(f, s, f->rules->empty[t], sides, &power[t], &under[t], &over[t]);
        top = t ? larger(top, power[t]) : power[t];
    }
    for (int t = 0; t < TREES; t++) {
        likelihood[t] = scaled(likelihood[t], power[t] - top) / TREES;
        total += likelihood[t];
    }
    s->out[TREE] = logarithm_with(total, top);
    for (int t = 0; sides && t < TREES; t++) {
        s->out[TREE_OVER] += likelihood[t] / total * over[t];
        s->out[TREE_UNDER] += likelihood[t] / total * under[t];
    }
}

PART void look(const Frame *f, const Sets *s, int sides, int width)
{
    for (Py_ssize_t k = 0; k < f->cells; k++)
        s->square[k] = s->z[k] * s->z[k];
    if (sides) {
        look_at_process(f, s, 1, width);
        look_at_tree(f, s, 1, width);
    } else {
        look_at_process(f, s, 0, width);
        look_at_tree(f, s, 0, width);
    }
}

VECTORISED static void look_alike(const Frame *f, const Sets *s, int sides)
{
    look(f, s, sides, 1);
}

VECTORISED static void look_apart(const Frame *f, const Sets *s, int sides)
{
    look(f, s, sides, LANES);
}

VECTORISED static void set_alike(Frame *f, const double *const *pulls, const double *const *sizes,
                      const double *const *means, const double *spectra, const double *waves)
{
    set_frame(f, 1, pulls, sizes, means, spectra, waves);
}

VECTORISED static void set_apart(Frame *f, const double *const *pulls, const double *const *sizes,
                                 const double *const *means, const double *spectra, const double *waves)
{
    set_frame(f, LANES, pulls, sizes, means, spectra, waves);
}

enum { Z, PULL, SIZES_OF, MEAN, SPECTRA, WAVE_SPECTRA, TURNS, SHAPE_PRIOR, MEAN_PRIOR, RULES, OUT };

/* What is wrong with the sizes of arrays that have the axes they should; NULL where they fit. */
static const char *misfit(const Call *call)
{
    Py_ssize_t cells = SIZE(*call, 'g'), sets = SIZE(*call, 's'), frames = SIZE(*call, 'f'), waves = 0;
    if (cells < 2 || cells & (cells - 1))
        return "cells must be a power of two";
    for (Py_ssize_t length = cells / 2; length >= SHORTEST; length /= 2)
        waves += length - 1;
    if (frames ? sets % frames : sets)
        return "each of the frames must be that of as many sets";
    if (SIZE(*call, 'r') < 1 || SIZE(*call, 'h') != cells - 1 || SIZE(*call, 'w') != waves || SIZE(*call, 't') < cells ||
        SIZE(*call, 'p') != 1 + SIZE(*call, 'r') * SIZES || SIZE(*call, 'u') != sizeof(Rules) / sizeof(double))
        return "tables do not fit";
    return SIZE(*call, 'c') != MEANS + 1 + SIZES + SIZE(*call, 'p') ? "the result does not fit" : NULL;
}

/* Numbers between the parts of a block: five lines of the cache, so that those of equal length do not meet in it. */
#define APART 40

/* A part of a block of memory: the pointer to it, and its size in numbers. */
typedef struct {
    void *to;
    Py_ssize_t size;
} Part;

/* Divide one block of memory. Returns 0, or -1 with an error set. */
static int divide(Call *call, const Part *part, size_t count)
{
    Py_ssize_t total = 8;
    for (size_t i = 0; i < count; i++)
        total += part[i].size + APART;
    double *at = borrow(call, (size_t)total * sizeof(double));
    if (!at)
        return -1;
    /* Lanes begin where a line of the cache does; sizes are those of whole lanes where it matters. */
    at += -(uintptr_t)at % 64 / sizeof(double);
    for (size_t i = 0; i < count; i++) {
        memcpy(part[i].to, &at, sizeof(at));
        at += part[i].size + APART;
    }
    return 0;
}

/* Look at sets first, first + 1, ... side by side; those of one frame have `each` sets. */
static void look_at_some(const Array *a, Frame *f, const Sets *s, Py_ssize_t first, Py_ssize_t count, Py_ssize_t each,
                         int apart, int sides)
{
    Py_ssize_t g = f->cells, columns = LENGTH(a[OUT], 1);
    const double *pulls[LANES], *sizes[LANES], *means[LANES];
    double *z = (double *)s->z, *out = (double *)s->out;
    /* Lanes without a set repeat the last one. */
    for (int l = 0; l < LANES; l++) {
        Py_ssize_t set = first + (l < count ? l : count - 1), frame = set / each;
        pulls[l] = DOUBLES(a[PULL]) + frame * g;
        sizes[l] = DOUBLES(a[SIZES_OF]) + frame * SIZES;
        means[l] = DOUBLES(a[MEAN]) + frame * SIZES;
        for (Py_ssize_t k = 0; k < g; k++)
            z[k * LANES + l] = DOUBLES(a[Z])[set * g + k];
    }
    if (apart)
        set_apart(f, pulls, sizes, means, DOUBLES(a[SPECTRA]), DOUBLES(a[WAVE_SPECTRA]));
    else if (first % each == 0)
        set_alike(f, pulls, sizes, means, DOUBLES(a[SPECTRA]), DOUBLES(a[WAVE_SPECTRA]));
    memset(out, 0, columns * LANES * sizeof(double));
    (apart ? look_apart : look_alike)(f, s, sides);
    for (Py_ssize_t l = 0; l < count; l++)
        for (Py_ssize_t i = 0; i < columns; i++)
            DOUBLES(a[OUT])[(first + l) * columns + i] = out[i * LANES + l];
}

/* Sets with frames of their own are looked at side by side, others with those that share their frame. */
static void look_at_all(const Array *a, Frame *f, const Sets *s, Py_ssize_t sets, Py_ssize_t each, int apart, int sides)
{
    Py_ssize_t together = apart ? sets : each;
    for (Py_ssize_t start = 0; start < sets; start += together)
        for (Py_ssize_t at = 0; at < together; at += LANES) {
            Py_ssize_t left = together - at, count = left < LANES ? left : LANES;
            look_at_some(a, f, s, start + at, count, each, apart, sides);
        }
}

/* shapes(z, pull, sizes, means, spectra, wave_spectra, turns, shape_prior, mean_prior, rules, out, sides): fill the
   rows of `out` for the sets of `z`. Each frame of pull, sizes and means is that of as many sets in turn. Without
   `sides` those of process and tree are 0. */
LOOP(shapes)
{
    Call call;
    Array *a = call.array;
    const char *wrong, *description = "d(sg) d(fg) d(f8) d(f8) d(rh) d(w) d(t) d(p) d(9) d(u) >d(sc) =i";
    Frame f = {0};
    Sets s;
    if (begin(&call, "shapes", description, args, count) < 0)
        return NULL;
    if ((wrong = misfit(&call)))
        return fail(&call, wrong), finish(&call);
    Py_ssize_t g = SIZE(call, 'g'), sets = SIZE(call, 's'), frames = SIZE(call, 'f'), parts = SIZE(call, 'r') * SIZES;
    Py_ssize_t each = frames ? sets / frames : 0, nodes = 2 * g - 1, waves = SIZE(call, 'w');
    int apart = frames > 1 && each == 1;
    Py_ssize_t width = apart ? LANES : 1;
    f.cells = g;
    while ((Py_ssize_t)1 << f.depth < g)
        f.depth++;
    f.roughs = SIZE(call, 'r');
    f.parts = parts;
    f.rules = a[RULES].view.buf;
    f.turns = DOUBLES(a[TURNS]);
    f.shape_prior = DOUBLES(a[SHAPE_PRIOR]);
    f.mean_prior = DOUBLES(a[MEAN_PRIOR]);
    Py_ssize_t levels = (f.depth + 1) * WAVES * width;
    const Part plan[] = {
        {&s.z, g * LANES}, {&s.square, g * LANES}, {&s.x, g * LANES}, {&s.shrink, g * LANES}, {&s.mean, g * LANES},
        {&s.work, g * LANES}, {&s.sums, nodes * LANES}, {&s.gapped, nodes * LANES},
        {&s.gapped_power, nodes * LANES}, {&s.stop, nodes * LANES}, {&s.power, nodes * LANES},
        {&s.chance, nodes * LANES}, {&s.reach, nodes * LANES}, {&s.above, nodes * LANES}, {&s.below, nodes * LANES},
        {&s.shape, (parts + 1) * LANES}, {&s.out, SIZE(call, 'c') * LANES}, {&f.variance, nodes * FLATS * width},
        {&f.cost, nodes * FLATS * width}, {&f.pull, g * width}, {&f.pulled, nodes * width}, {&f.wave_share, levels},
        {&f.wave_mean, levels}, {&f.wave_cost, levels}, {&f.wave_spectrum, waves * WAVES * width},
        {&f.share, parts * (g - 1) * width}, {&f.shape_cost, parts * width}, {&f.mean_share, SIZES * width},
        {&f.mean_cost, SIZES * width},
    };
    if (divide(&call, plan, sizeof(plan) / sizeof(plan[0])) == 0) {
        Py_BEGIN_ALLOW_THREADS
        look_at_all(a, &f, &s, sets, each, apart, SIZE(call, 'i') != 0);
        Py_END_ALLOW_THREADS
    }
    return finish(&call);
}

#endif

PyMethodDef shape_methods[] = {
#ifdef HAVE_LANES
    METHOD(shapes),
#ifndef WIDE
    {"narrow_shapes", (PyCFunction)(void (*)(void))(shapes), METH_FASTCALL, NULL},
#endif
#endif
    NO_METHOD,
};
