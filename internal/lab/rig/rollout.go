package rig

import "math"

// rollout relates the recomputes of bursts to how far a deploy had come.
type rollout struct {
	share               float64 // of instances that run another build than at the start
	n, x, y, xx, yy, xy float64 // sums over bursts that began in the middle of one
}

// Rolled notes that that share of the instances that are up run another build than the
// fleet started with.
func (a *Account) Rolled(share float64) { a.bursts.rollout.share = share }

// add takes in a burst that began at the given share.
func (r *rollout) add(share float64, starts int) {
	if share <= 0 || share >= 1 {
		return
	}
	y := float64(starts)
	r.n++
	r.x += share
	r.y += y
	r.xx += share * share
	r.yy += y * y
	r.xy += share * y
}

// correlation returns Pearson's coefficient, and whether there is one.
func (r *rollout) correlation() (float64, bool) {
	vx, vy := r.n*r.xx-r.x*r.x, r.n*r.yy-r.y*r.y
	if r.n < 3 || vx <= 0 || vy <= 0 {
		return 0, false
	}
	return (r.n*r.xy - r.x*r.y) / math.Sqrt(vx*vy), true
}
